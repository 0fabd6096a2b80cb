#!/bin/sh
# Makes .venv if need be and installs what a lock names, and Roost itself: tools/setup_venv.sh run|dev
set -eu

say() { printf '%s\n' "$*"; }
stop() { say "$*" >&2; exit 1; }

find_python() {
    for name in ${PYTHON:-} python3 python3.14 python3.13 python3.12 python3.11; do
        if "$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            say "$name"
            return
        fi
    done
    stop "Roost needs Python 3.11 or newer, and found none. Install one, or name it: make run PYTHON=/path/to/python3"
}

has() { "$python" -c "import $1" 2>/dev/null; }

# Debian keeps the part of the standard library that puts pip into a venv in a package of its own.
add_debians_venv() {
    say "Installing python3-venv (once) …"
    # One foreign source out of reach fails the update, and does not hinder the install.
    apt-get -qq update || true
    DEBIAN_FRONTEND=noninteractive apt-get -qq install --no-install-recommends python3-venv > /dev/null
}

# Not being root we can't install that package, but pip can be taken out of another, by an apt with its own state.
unpack_debians_pip() {
    folder=$(pwd)/.cache/debians-pip
    rm -rf "$folder"
    mkdir -p "$folder/lists/partial"
    set -- -qq -o "Dir::State::lists=$folder/lists" -o "Dir::Cache=$folder" -o Debug::NoLocking=1
    apt-get "$@" update || true
    (cd "$folder" && apt-get "$@" download python3-pip-whl && dpkg -x python3-pip-whl_*.deb .)
    rm -rf "$folder/lists"
}

make_venv() {
    rm -rf .venv
    if has ensurepip; then
        "$python" -m venv .venv
        return
    fi
    "$python" -m venv --without-pip .venv
    if has pip; then
        "$python" -m pip --python .venv/bin/python install -qq pip
    elif command -v apt-get > /dev/null && unpack_debians_pip; then
        wheel=$(echo .cache/debians-pip/usr/share/python-wheels/pip-*.whl)
        .venv/bin/python "$wheel/pip" install -qq --no-index "$wheel"
    else
        stop "Python's venv is incomplete here. On Debian and Ubuntu: sudo apt-get install python3-venv"
    fi
}

was_made_here() {
    [ "$(cat .venv/.made-in 2>/dev/null)" = "$(pwd)" ] && .venv/bin/python -m pip --version > /dev/null 2>&1
}

if ! was_made_here; then
    python=$(find_python)
    if ! has ensurepip && [ "$(id -u)" = 0 ] && command -v apt-get > /dev/null; then
        add_debians_venv
    fi
    say "Making .venv with $("$python" --version) …"
    make_venv
    pwd > .venv/.made-in
fi

# Counts the packages while pip collects them, and shows errors; warnings about the machine's own pip settings are dropped.
show_progress() {
    count=0 total=$1
    while IFS= read -r line; do
        case $line in
        Ignoring*) total=$((total - 1)) ;; # for another system or another Python
        Collecting* | Processing*)
            count=$((count + 1))
            if [ -t 1 ]; then printf '\r  %s of %s packages' "$count" "$total"
            elif [ $((count % 25)) = 0 ]; then say "  $count of $total packages"; fi
            ;;
        "Installing collected"*)
            [ ! -t 1 ] || printf '\r'
            say "  $count of $total packages are here, writing them …"
            ;;
        ERROR* | *"error:"*) say "$line" >&2 ;;
        esac
    done
}

# uv takes a tenth of pip's time. It does not read pip's settings, so the index and the certificates come from these.
install_with_uv() {
    .venv/bin/python -m pip install -qq --disable-pip-version-check --no-input --require-hashes -r requirements/uv.txt \
        2> /dev/null || return 1
    quiet=--quiet
    [ ! -t 2 ] || quiet= # shows its progress
    index=${PIP_INDEX_URL:-$(.venv/bin/python -m pip config get global.index-url 2> /dev/null || true)}
    ${index:+env UV_DEFAULT_INDEX="$index"} ${PIP_CERT:+env SSL_CERT_FILE="$PIP_CERT"} \
        .venv/bin/uv pip install $quiet --python .venv/bin/python --require-hashes --only-binary xllamacpp -r "$1"
}

install_with_pip() {
    mkdir -p .cache
    {
        status=0
        .venv/bin/python -m pip install --disable-pip-version-check --no-input --no-color --progress-bar off --require-hashes \
            --no-compile --only-binary xllamacpp -r "$1" 2>&1 || status=$?
        echo "$status" > .cache/pip-status
    } | show_progress "$(grep -c '^[a-z0-9].*==' "$1")"
    return "$(cat .cache/pip-status)"
}

install() {
    install_with_uv "$1" || { say "Installing with pip instead, which takes longer …" && install_with_pip "$1"; }
}

# What runs models on this machine has no wheel for some: all but that one works without it.
install_without_models() {
    mkdir -p .cache
    awk '/^[a-z]/ { drop = /^xllamacpp==/ } !drop' "requirements/$1.txt" > ".cache/$1-without-models.txt"
    install ".cache/$1-without-models.txt"
}

say "Installing dependencies (once) …"
if ! install "requirements/$1.txt"; then
    [ "$1" = run ] || exit 1
    say "Trying without what runs models on this machine …"
    install_without_models "$1"
fi
.venv/bin/python -m pip install -qq --disable-pip-version-check --no-input --no-build-isolation --no-deps -e .
# pip compiles on one processor only. Some packages hold files that no Python compiles.
.venv/bin/python -m compileall -qq -j 0 .venv/lib src || true
