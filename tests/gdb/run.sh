#!/usr/bin/env bash
# run.sh PROGRAM: steps through PROGRAM (softmax.cpp, compiled with -O0 -g) as softmax.gdb says, and checks what gdb prints, and that
# cuda/README.md shows the same commands with the same values; addresses, breakpoint numbers and line numbers do not count.
# The last line is "N passed, N failed".
set -u
program=$1
here=$(dirname "$0")
passed=0 failed=0
if ! command -v gdb >/dev/null 2>&1; then
  echo "gdb-test: there is no gdb; as root: apt-get install -y gdb" >&2
  exit 1
fi
session=$(HEED_EMULATOR=order=forward OMP_NUM_THREADS=1 timeout 120 gdb -nx -q -batch -x "$here/softmax.gdb" "$program" 2>/dev/null | sed 's/^+/(gdb) /')

result() {  # WHAT STATUS
  if [ "$2" = 0 ]; then passed=$((passed + 1)) && echo "ok: $1"; else failed=$((failed + 1)) && echo "FAILED: $1"; fi
}

# The Nth answer to a command: what stands between it and the next one.
answer() {  # COMMAND N
  awk -v command="(gdb) $1" -v n="$2" '/^\(gdb\) /{on = ($0 == command && ++seen == n); next} on' <<<"$session"
}
check() {  # WHAT COMMAND N EXPECTED: a regular expression
  answer "$2" "$3" | grep -qE -- "$4"
  result "$1" $?
}

thread='^\$[0-9]+ = \{x = 64, y = 0, z = 0\}$'
nan='\{max = -?nan\([0-9a-fx]+\), sum = -?nan\([0-9a-fx]+\)\}'
warps() {  # FROM TO: what warps of row 1 wrote
  for i in $(seq "$1" "$2"); do printf '\\{max = %d, sum = 256\\}, ' "$i"; done
}
check "the kernel stops in the block-wide variant"          run 1               'softmax_rows<float, 256, false>'
check "at the chosen thread"                                'print threadIdx' 1 "$thread"
check "its arguments can be read"                           'print rows.length' 1 '^\$[0-9]+ = 2048$'
check "the same thread is found in the reduction"           continue 1          'team_reduce<256'
check "next over the shuffles leads to the barrier"         'next 3' 1          '__syncthreads\(\);'
check "the thread's own sum is that of its warp"            'print value' 1     '^\$[0-9]+ = \{max = 3, sum = 256\}$'
check "shared memory before the barrier: later warps wrote nothing yet" 'print *shared@8' 1 "^\\\$[0-9]+ = \\{$(warps 1 3)$nan <repeats 5 times>\\}\$"
check "next over the barrier stops at the next line"        next 1              'value = shared\[0\];'
check "in the same thread"                                  'print threadIdx' 2 "$thread"
check "shared memory after the barrier: every warp wrote"   'print *shared@8' 2 "^\\\$[0-9]+ = \\{$(warps 1 7)\\{max = 8, sum = 256\\}\\}\$"
check "finish leads back into the kernel, with the row's sum" finish 1          'Value returned is \$[0-9]+ = \{max = 8, sum = 404\.850[0-9]*\}'
check "locals of the kernel: the row"                       'info locals' 1     '^r = 1$'
check "locals of the kernel: maximum and sum"               'info locals' 1     '^s = \{max = 8, sum = 404\.850[0-9]*\}$'
check "locals of the kernel: the flag"                      'info locals' 1     '^only_minus_infinity = false$'
check "still in the same thread"                            'print threadIdx' 3 "$thread"
check "of the same block"                                   'print blockIdx' 1  '^\$[0-9]+ = \{x = 1, y = 0, z = 0\}$'

told() {  # the commands and the values of a session
  grep -E '^\(gdb\) |^(\$[0-9]+|[a-z_]+) = |^Value returned' | sed -E 's/0x[0-9a-f]+/0x/g'
}
difference=$(diff <(sed -n '/^(gdb) break softmax_rows/,$p' <<<"$session" | told) \
                  <(sed -n '/^(gdb) break softmax_rows/,/^```/p' "$here/../../cuda/README.md" | told))
result "cuda/README.md shows this session" $?
[ "$failed" = 0 ] || printf '%s\n' "the session:" "$session" "its difference from cuda/README.md:" "$difference"

echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
