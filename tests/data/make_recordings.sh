#!/bin/sh
# Makes the recordings of real output in litert_runner/ and agent/. Run it from the root of the checkout, with the venv
# active and the agents built; then look at the difference before committing: tests name figures of these files.
set -u
runner=device_agents/litert_runner.py
agent=device_agents/bin/devbench-agent-x86_64
float=orchestrator/bundled/mobilenet_v2_035_f32.tflite
int8=orchestrator/bundled/mobilenet_v2_035_int8.tflite
models=tests/data/models
out=tests/data/litert_runner
mkdir -p tests/data/litert_runner tests/data/agent

run() { # NAME, then the arguments that differ from the ordinary ones
    name=$1; shift
    python $runner --copy copy --seed 1 --warmup-runs 2 --warmup-min-ms 0 --min-ms 0 "$@" > $out/$name.jsonl 2> /dev/null
}
run xnnpack_2_threads --model=$float --threads 2 --delegate xnnpack --max-ms 5000 --runs 12
run cpu_1_thread --model=$int8 --threads 1 --delegate cpu --max-ms 5000 --runs 12
run zero_copy --model=$float --threads 1 --delegate xnnpack --copy zero-copy --max-ms 5000 --runs 12
run three_chunks --model=$models/tiny_add.tflite --threads 1 --delegate xnnpack --max-ms 5000 --runs 1200
run capped --model=$float --threads 1 --delegate xnnpack --max-ms 100 --runs 5000
run sha_mismatch --model=$float --threads 1 --delegate xnnpack --max-ms 5000 --runs 2 --expect-sha256 "$(printf '%064d' 0)"
for model in custom_op partial xnnpack_refuses string_input truncated not_a_model no_scale; do
    run $model --model=$models/$model.tflite --threads 1 --delegate xnnpack --max-ms 5000 --runs 2
done
python $runner --check > $out/check.jsonl

out=tests/data/agent
python=$(command -v python)
measured() { # the measured command of the trials below
    set -- "$python" $runner --model=$float --threads 2 --delegate xnnpack --copy copy --seed 1 --warmup-runs 2 \
        --warmup-min-ms 100 --runs 20 --min-ms 300 --max-ms 5000
    printf '%s\n' "$@"
}
trial() { # NAME, options; the measured command follows
    name=$1; shift
    # shellcheck disable=SC2046
    $agent run --detached --sample-ms 50 --heartbeat-s 0 "$@" -- $(measured) > $out/$name.txt
}
trial idle --affinity 3
trial loaded --load cpu:1@50 --settle-ms 300
trial hold_refused --hold /sys/devices/system/cpu/cpu0/cpufreq/scaling_governor=performance # where there is none
begun() { # NAME, a shell line that runs first, then options of the agent; the measured command takes its place
    name=$1 line=$2; shift 2
    # shellcheck disable=SC2046
    $agent run --detached --sample-ms 50 "$@" -- sh -c "$line"' exec "$@"' sh $(measured) > $out/$name.txt
}
mkdir /tmp/devbench-held && echo 1 > /tmp/devbench-held/setting
begun hold_lost 'rm -r /tmp/devbench-held;' --hold /tmp/devbench-held/setting=2
begun starved 'renice -n -10 $$ > /dev/null;' --load cpu:1@100 --settle-ms 200 --load-placement same-group \
    --load-affinity 1 --affinity 1 # as root, on a busy machine
root=$(mktemp -d) # a kernel whose clock falls and whose hypervisor takes time away
cpu=$root/sys/devices/system/cpu
mkdir -p "$root/proc" "$cpu/cpu0/cpufreq"
echo 0 | tee "$cpu/present" > "$cpu/online"
stat() { printf 'cpu  0 0 0 0 0 0 0 %d 0 0\ncpu0 0 0 0 0 0 0 0 %d 0 0\n' "$1" "$1" > "$root/proc/stat"; }
stat 0; echo 2400000 > "$cpu/cpu0/cpufreq/scaling_cur_freq"
(sleep 0.4; stat 20; echo 1800000 > "$cpu/cpu0/cpufreq/scaling_cur_freq") &
DEVBENCH_SYSROOT=$root begun slowed ''
rm -r "$root"
$agent run --detached --sample-ms 0 -- sh -c 'echo "about to fall" >&2; kill -SEGV $$' > $out/crash.txt
$agent run --detached --sample-ms 0 -- sh -c 'kill -KILL $$' > $out/killed.txt
$agent run --detached --sample-ms 0 --deadline-s 0.3 -- sleep 5 > $out/deadline.txt
$agent run --detached --sample-ms 0 -- sh -c 'echo "cannot open /dev/gpu" >&2; exit 3' > $out/exit_3.txt
$agent run --detached --sample-ms 0 -- /no/such/program > $out/spawn.txt
$agent run --sample-ms 0 -- sleep 5 < /dev/null > $out/host_gone.txt
$agent run --detached --sample-ms 0 --load exec --load-argc 3 --settle-ms 50 -- \
    sh -c 'echo ready; sleep 0.2; echo "no memory for the load" >&2; exit 3' sleep 5 > $out/load_died.txt
$agent run --detached --sample-ms 0 -- printf 'one line\nno newline at the end' > $out/no_newline.txt
$agent run --detached --sample-ms 0 -- "$python" -c 'print("x" * 80000); print("short")' > $out/long_line.txt
$agent probe > $out/probe.json
