#!/bin/sh
# Run all tests: tools/run_tests.sh PYTHON
# Three processes share them, because tests mostly wait: for programs, browsers and databases.
# Tests that measure how long something takes (marked `alone`) run after all others.
set -u
unset PYTHONDONTWRITEBYTECODE # hundreds of tests start Roost: each would compile it again
python=$1
claims=.cache/claims
rm -rf "$claims"
mkdir -p "$claims"

worker() {
    "$python" -m pytest -p no:cacheprovider -p tools.share_tests --share "$claims" --worker "$1/3" \
        -m "not soak and not alone"
}

worker 2 > .cache/tests-2.txt 2>&1 &
second=$!
worker 3 > .cache/tests-3.txt 2>&1 &
third=$!
code=0
worker 1 || code=1
wait $second || code=1
wait $third || code=1
cat .cache/tests-2.txt .cache/tests-3.txt
# shellcheck disable=SC2046
"$python" -m pytest -p no:cacheprovider -m alone $(grep -rl --include='*.py' 'pytest\.mark\.alone' tests) || code=1
exit $code
