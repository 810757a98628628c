#!/bin/sh
# Finds Catch2 (version 3 or 2) or installs it where that asks nobody; else says what to install.
#   tests/find_catch2.sh build/catch2 g++ -std=c++20     writes build/catch2, a log of what was done
log=$1
shift

found() {
  for header in catch_all catch; do
    echo "#include <catch2/$header.hpp>" |
      "$@" $(pkg-config --cflags catch2 2>/dev/null) -E -x c++ - >/dev/null 2>&1 && return 0
  done
  return 1
}

install_package() {
  command -v apt-get >/dev/null || return 1
  sudo=
  if [ "$(id -u)" != 0 ]; then
    sudo -n true 2>/dev/null || return 1
    sudo='sudo -n'
  fi
  apt="$sudo env DEBIAN_FRONTEND=noninteractive apt-get -q"
  $apt install -y catch2 || { $apt update && $apt install -y catch2; }
}

found "$@" || {
  echo 'make test: Catch2 is missing, trying to install the package catch2'
  install_package >"$log.log" 2>&1
}
if found "$@"; then
  echo found >"$log"
  exit 0
fi
cat >&2 <<END
make test needs Catch2, version 3 or 2, and did not find it. To install it:
  Debian, Ubuntu   apt-get install catch2
  Fedora           dnf install catch2-devel
  macOS            brew install catch2
END
exit 1
