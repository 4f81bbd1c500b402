#!/bin/sh
# check_examples.sh PROGRAM...: every example prints what the comment at its top shows, line by line, in less than five seconds on
# a quiet machine. The comment's title says how it is to be compared:
#   Output:                     to the character
#   Output of --quick:          the same, of the quick setting, for a program that works longer
#   Output within 5%:           (or "of --quick within 5%:") numbers may differ by so much, as after training they do between
#                               processors; what is not a number may not
status=0
for program in "$@"; do
  source=examples/$(basename "$program").cpp
  title=$(grep -E '^// Output( of --quick)?( within [0-9]+%)?:$' "$source" | grep -e --quick || grep -m 1 -E '^// Output( within [0-9]+%)?:$' "$source")
  quick=$(echo "$title" | grep -o -e --quick)
  percent=$(echo "$title" | grep -oE '[0-9]+%' | tr -d %)
  expected=$(awk -v title="$title" '$0 == title { on = 1; next } /^\/\/ Output/ || !/^\/\// { on = 0 } on { print substr($0, 6) }' "$source")
  got=$(OMP_NUM_THREADS=1 "$program" $quick)
  if [ -n "$title" ] && printf '%s\n' "$expected" >/tmp/heed-expected.$$ && printf '%s\n' "$got" | awk -v percent="${percent:-0}" -v file=/tmp/heed-expected.$$ '
      function number(s) { return s ~ /^[-+]?[0-9]+(\.[0-9]*)?(e[-+]?[0-9]+)?%?,?$/ }
      function near(a, b,  d) { d = a > b ? a - b : b - a; return d <= percent / 100 * (b < 0 ? -b : b) }
      { if ((getline line < file) != 1) { wrong = 1; exit }
        if (percent == 0) { if ($0 != line) { wrong = 1; exit }; next }
        n = split(line, words)
        if (n != NF) { wrong = 1; exit }
        for (i = 1; i <= n; i++) {
          if ($i == words[i]) continue
          if (!number($i) || !number(words[i]) || !near($i + 0, words[i] + 0)) { wrong = 1; exit }
        } }
      END { if (wrong || (getline line < file) == 1) exit 1 }'; then
    echo "$program $quick prints what its comment shows"
  else
    printf '%s %s does not print what its comment shows, but:\n%s\n' "$program" "$quick" "$got" >&2
    status=1
  fi
  rm -f /tmp/heed-expected.$$
done
exit $status
