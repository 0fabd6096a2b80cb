#!/bin/sh
# Run all tests: tools/run_tests.sh PYTHON
# Four processes share them, because tests mostly wait: for programs, browsers and databases.
# Tests that measure how long something takes (marked `alone`) run after all others.
set -u
unset PYTHONDONTWRITEBYTECODE # hundreds of tests start Roost: each would compile it again
python=$1
claims=.cache/claims
rm -rf "$claims"
mkdir -p "$claims"

worker() {
    "$python" -m pytest -p no:cacheprovider -p tools.share_tests --share "$claims" --worker "$1/4" \
        -m "not soak and not alone"
}

for number in 2 3 4; do
    { worker $number > .cache/tests-$number.txt 2>&1 || touch "$claims/failed"; } &
done
code=0
worker 1 || code=1
wait
[ ! -e "$claims/failed" ] || code=1
cat .cache/tests-2.txt .cache/tests-3.txt .cache/tests-4.txt
# shellcheck disable=SC2046
"$python" -m pytest -p no:cacheprovider -m alone $(grep -rl --include='*.py' 'pytest\.mark\.alone' tests) || code=1
exit $code
