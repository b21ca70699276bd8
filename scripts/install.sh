#!/usr/bin/env bash
# Makes .venv and installs a pinned set into it: `scripts/install.sh light` or `scripts/install.sh dev`.
# A stamp of the requirement files makes a second call free.
set -euo pipefail
cd "$(dirname "$0")/.."
set_name=${1:-light}
python=${PYTHON:-python3}
venv=${VENV:-.venv}

"$python" - <<'PY' || { echo "datamill needs Python 3.11 or newer: set PYTHON=/path/to/python3.11" >&2; exit 6; }
import sys
sys.exit(sys.version_info < (3, 11))
PY

files=(requirements/light.txt)
[ "$set_name" = dev ] && files+=(requirements/dev.txt)
stamp=$(cat "${files[@]}" pyproject.toml scripts/install.sh | sha256sum | cut -c1-16)
if [ -f "$venv/.datamill-$set_name" ] && [ "$(cat "$venv/.datamill-$set_name")" = "$stamp" ]; then
  exit 0
fi
[ -x "$venv/bin/python" ] || "$python" -m venv "$venv"

links=${PIP_FIND_LINKS:-$("$venv/bin/python" -m pip config get global.find-links 2>/dev/null || true)}
args=()
for file in "${files[@]}"; do args+=(-r "$file"); done

install_with_uv() {
  "$venv/bin/python" -m pip install -q --disable-pip-version-check 'uv>=0.8' || return 1
  local uv=("$venv/bin/uv" pip install -q -p "$venv/bin/python")
  if [ -n "$links" ]; then
    UV_FIND_LINKS=${links// /,} "${uv[@]}" "${args[@]}" || return 1
  else
    # torch from its CPU index: the default Linux wheel carries several GB of CUDA
    "${uv[@]}" --torch-backend cpu "${args[@]}" || return 1
  fi
  "${uv[@]}" --no-deps llamafactory==0.9.5 && "${uv[@]}" --no-deps -e .
}

install_with_pip() {
  local pip=("$venv/bin/python" -m pip install -q --disable-pip-version-check)
  "${pip[@]}" "${args[@]}" && "${pip[@]}" --no-deps llamafactory==0.9.5 && "${pip[@]}" --no-deps -e .
}

install_with_uv || { echo "uv could not install the set, trying pip" >&2; install_with_pip; }

# Page tests want a real browser. Without one they skip, so a failure here stops nothing.
install_browser() {
  command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null && return 0
  [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || return 0
  apt-get update -qq >/dev/null 2>&1 && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium >/dev/null 2>&1 \
    || echo "chromium could not be installed: tests of the report page will be skipped" >&2
}
[ "$set_name" = dev ] && install_browser

echo "$stamp" > "$venv/.datamill-$set_name"
