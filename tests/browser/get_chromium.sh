#!/bin/sh
# Make sure that there is a Chromium for the tests, from the system's packages; needs apt-get and the right to use it.
set -u
for name in chromium chromium-browser google-chrome; do
    if command -v "$name" >/dev/null; then exit 0; fi
done
if command -v apt-get >/dev/null; then
    if [ "$(id -u)" = 0 ]; then as_root=""
    elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then as_root="sudo -n"
    else as_root="none"
    fi
    if [ "$as_root" != none ]; then
        echo "Installing chromium (once, a minute)"
        $as_root apt-get update -qq && $as_root apt-get install -y -qq chromium >/dev/null && exit 0
    fi
fi
echo "These tests need Chromium: install the package chromium (Debian: apt-get install chromium) and try again." >&2
exit 1
