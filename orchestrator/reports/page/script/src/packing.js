// Takes out what the file carries compressed.

/** The content of an element that holds JSON, compressed, in base 64. */
export async function unpacked(element) {
  const binary = atob(element.textContent);
  const bytes = Uint8Array.from(binary, (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}
