#!/system/bin/sh
# benchmark_app.sh - runs TFLite's benchmark app once, and tells what it logged: the agent's child in a trial of benchmark_app.
#
#   sh benchmark_app.sh check APK                          which APK is installed; changes nothing
#   sh benchmark_app.sh run APK WAIT_S RESULTS FLAG...     installs the APK if it is not, starts the app with the flags, follows
#                                                          the log until the app has reported, failed or died, stops the app
#
# RESULTS is yes where the build can write a result file (--result_file_path), else no. No flag may hold white space: the app
# splits them there. Standard output, one fact a line:
#
#   log LINE             a line of logcat -v threadtime, as it came
#   app KEY TEXT         what this script did or saw; `app ended WHY` is the last word on the app
#
# The app gives no exit status: whatever happens, this script ends with 0 once it has said why. An app is no child of ours, so no
# signal reaches it through us. It is stopped on the way out, also when the agent asks us to end (SIGTERM to our group). Written
# for mksh and other POSIX shells; while the app infers, nothing is started here but one `sleep` a second. No fifo: SELinux
# lets the shell make none in /data/local/tmp.
set -f
LC_ALL=C
export LC_ALL

package=org.tensorflow.lite.benchmark
activity=$package/.BenchmarkModelActivity
tags="devbench:V tflite:V tflite_BenchmarkModelActivity:V ActivityManager:I AndroidRuntime:E libc:F DEBUG:F lowmemorykiller:V lmkd:V"
no_log_after=5  # ticks without our own mark in the log
quiet_ticks=3   # ticks in which the app's main thread did not run at all

say() { printf 'app %s\n' "$*"; }

end() { # why the following ends
  look
  [ -z "$pid" ] || say "process pid=$pid threads=$threads affinity=$mask cpu_ticks=$cpu cpuset=$cpuset hwm_kb=$hwm"
  say "ended $*"
  kill -9 $feeders 2>/dev/null # a shell that waits for its sleep would finish that first
  exit 0
}

# Which APK is installed: same, other, none.
installed() {
  path=$(pm path $package 2>&1)
  case $path in
    package:*) path=${path#package:}; path=${path%%
*} ;;
    "") echo none; return ;;
    *) echo "unknown $path"; return ;;
  esac
  if cmp -s "$path" "$1"; then echo same; else echo other; fi
}

install() {
  found=$(installed "$1")
  [ "$found" = same ] && { say "installed same"; return 0; }
  said=$(pm install -r -d -t -g "$1" 2>&1)
  now=$(installed "$1")
  [ "$now" = same ] || { say "install-refused" $said "($now)"; return 1; }
  say "installed anew"
  sleep 1 # the package manager is still at work on it
}

# What the kernel shows of the app: threads, CPU time, where it may run. Only builtins.
look() {
  [ -n "$pid" ] || return 1
  { read -r stat < /proc/$pid/stat; } 2>/dev/null || return 1
  set -- ${stat##*) }
  cpu=$((${12} + ${13}))
  [ "${18}" -gt "$threads" ] && threads=${18}
  pulse=$cpu
  while read -r key value rest; do
    case $key in
      Cpus_allowed:) mask=$value ;;
      VmHWM:) hwm=$value ;;
      *ctxt_switches:) pulse=$pulse/$value ;;
    esac
  done 2>/dev/null < /proc/$pid/status
  { read -r cpuset < /proc/$pid/cpuset; } 2>/dev/null
  return 0
}

# The activity has left the stack: it ran to its end. Asked only when the app is quiet; unknown counts as not finished.
finished() {
  stack=$(dumpsys activity activities 2>/dev/null)
  case $stack in
    *Hist*"$activity"*) return 1 ;;
    *Hist*) return 0 ;;
  esac
  return 1
}

start_app() {
  said=$(am start -S -n $activity --es args "$args" 2>&1)
  say "start" $said
  case $said in *Error*|*Exception*) end start-refused ;; esac
}

tick() {
  ticks=$((ticks + 1))
  [ "$begun" = yes ] || { [ $ticks -lt $no_log_after ] || end no-log; return; }
  [ $ticks -lt "$wait_s" ] || end timeout
  [ -z "$reported" ] || { [ "$reported" = twice ] && end reported; reported=twice; } # what else it prints comes at once
  [ -n "$pid" ] || return
  before=$pulse
  if ! look; then
    [ "$dead" = yes ] && end died
    [ -n "$before" ] && dead=yes # was there, and is gone; its last words may still be on their way
  elif [ "$pulse" != "$before" ]; then
    quiet=0
  else
    quiet=$((quiet + 1))
    [ $((quiet % quiet_ticks)) -eq 0 ] && finished && end finished
  fi
}

# One line of the log. Until our mark nothing counts, and of other processes only what is about the app's.
take() {
  line=$1
  set -- $line
  case $begun-$line in
    no-*"devbench"*": mark $name") begun=yes; ticks=0; start_app; return ;;
    no-*) return ;;
    yes-*" ActivityManager: Start proc "*":$package/"*) proc=${line#*Start proc }; pid=${proc%%:*}; printf 'log %s\n' "$line"; return ;;
    yes-*" tflite_BenchmarkModelActivity: "*"=$name"*) pid=$3 ;;
  esac
  [ -n "$pid" ] || return
  if [ "$3" != "$pid" ]; then
    case $line in *"$package"*|*" pid $pid"*|*"($pid)"*) printf 'log %s\n' "$line" ;; esac
    case $line in *" (pid $pid) has died"*) dead=yes ;; esac
    return
  fi
  printf 'log %s\n' "$line"
  case $line in
    *"Running benchmark for "*) look ;;
    *"nference timings in us: "*) look; reported=once ;;
    *"emory footprint "*"(MB): init="*) [ "$reported" ] && [ "$results" = no ] && end reported ;;
    *"Saved benchmark result to: "*|*"Failed to save benchmark result to: "*) end reported ;;
  esac
}

# The log and a clock, as one stream.
feed() {
  logcat -v threadtime -T "$since" -s $tags &
  log=$!
  echo "feeder $log"
  (while sleep 1; do echo tick; done) &
  echo "feeder $!"
  wait $log
  echo "log-ended"
  wait
}

follow() {
  begun=no pid= pulse= threads=0 mask= cpu= cpuset= hwm= ticks=0 quiet=0 reported= dead=no feeders=
  while IFS= read -r line; do
    case $line in
      tick) tick ;;
      feeder\ *) feeders="$feeders ${line#feeder }" ;;
      log-ended) end log-ended ;;
      *) take "$line" ;;
    esac
  done
}

# The app must be able to read the model, which is the shell's.
expose() {
  for flag in "$@"; do
    case $flag in --graph=*)
      file=${flag#--graph=}
      folder=${file%/*}
      chmod a+r "$file"
      chmod a+x "$folder" "${folder%/*}" "${folder%/*/*}" ;;
    esac
  done 2>/dev/null
}

stop() {
  trap '' TERM HUP INT
  am force-stop $package >/dev/null 2>&1
}

run() {
  apk=$1 wait_s=$2 results=$3
  shift 3
  trap stop EXIT
  trap 'exit 143' TERM HUP INT
  install "$apk" || { say "ended install-refused"; exit 0; }
  expose "$@"
  { read -r name < /proc/sys/kernel/random/uuid; } 2>/dev/null || name=$$-$(date +%s)
  name=devbench-$name
  file=/data/data/$package/cache/$name.pb
  args="--benchmark_name=$name $*"
  [ "$results" = yes ] && args="$args --result_file_path=$file"
  say "name $name"
  say "args $args"
  am force-stop $package >/dev/null 2>&1
  since=$(date '+%m-%d %H:%M:%S.000')
  log -p i -t devbench "mark $name"
  feed 2>/dev/null | follow
  [ "$results" = yes ] || exit 0
  # The app's own file, which only the app's user may read; a debuggable app can be asked through run-as.
  bytes=$(run-as $package cat "$file" 2>/dev/null | od -An -v -tx1)
  say "result-file" $bytes
  run-as $package rm -f "$file" >/dev/null 2>&1
}

case $1 in
  check) say "installed $(installed "$2")" ;;
  run) shift; run "$@" ;;
  *) echo "usage: benchmark_app.sh check APK | run APK WAIT_S RESULTS FLAG..." >&2; exit 64 ;;
esac
