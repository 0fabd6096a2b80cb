#!/bin/sh
# Runs all tests, in two groups beside each other that take about as long: tools/run_tests.sh PYTHON PLACE…
# What starts programs and browsers, which is in these places, mostly waits for them, so the rest is tested beside it.
# A test that fails there may only have been starved: it is told, and tried once more by itself. What fails twice fails.
# Those that measure how long something takes (marked `alone`) come after all others.
set -u
python=$1
shift
rest=
for place in "$@"; do rest="$rest --ignore=$place"; done
mkdir -p .cache
rm -rf .cache/waiting .cache/rest .cache/alone

group() {
    name=$1
    shift
    "$python" -m pytest -o "cache_dir=.cache/$name" "$@"
}

again() {
    [ "$2" -eq 1 ] || return "$2" # 1: tests have failed, and nothing worse has happened
    echo "Trying what failed once more, by itself …"
    group "$1" -m "not soak" --last-failed --last-failed-no-failures=none
}

# shellcheck disable=SC2086
group rest -m "not soak and not alone" $rest > .cache/tests.txt 2>&1 &
beside=$!
group waiting -m "not soak and not alone" "$@"
waiting=$?
wait $beside
rest=$?
cat .cache/tests.txt
group alone -m alone
alone=$?
code=0
again waiting $waiting || code=1
again rest $rest || code=1
again alone $alone || code=1
exit $code
