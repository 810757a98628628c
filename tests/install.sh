#!/bin/sh
# Other projects: what `make install` put under a prefix, found through pkg-config or CMake, is enough
# to compile, link and run a program.
#   tests/install.sh PREFIX g++
set -eu
prefix=$1
shift
command -v pkg-config >/dev/null || { echo 'check-install: skipped, pkg-config is missing'; exit; }
export PKG_CONFIG_PATH="$prefix/lib/pkgconfig" TC_CACHE_DIR="$prefix/cache"
cd "$prefix"
cat > mine.cpp <<'END'
#include <tiny_compile/tiny_compile.h>

#include <iostream>

namespace tc = tiny_compile;

int main() {
  auto f = tc::compile([](tc::Tensor x, tc::Tensor bias) { return tc::gelu(x + bias).sum(); });
  std::cout << f(tc::ones({4, 8}), tc::zeros({8})).item<float>() << "\n";
}
END
"$@" -std=c++20 -Wall -Wextra -Werror mine.cpp $(pkg-config --cflags --libs tiny_compile) -o mine
got=$(./mine)
[ "$got" = 26.923 ] || { echo "check-install: the program printed '$got', not 26.923"; exit 1; }
echo 'graph g(%0 x: f32[3]) { %1: f32[3] = neg %0
return %1 }' | bin/tc run - --against=interpreter >/dev/null

if command -v cmake >/dev/null; then
  cat > CMakeLists.txt <<'END'
cmake_minimum_required(VERSION 3.16)
project(theirs LANGUAGES CXX)
find_package(tiny_compile 0.1 REQUIRED)
add_executable(theirs mine.cpp)
target_link_libraries(theirs PRIVATE tiny_compile::tiny_compile)
END
  if ! { CXX="$*" cmake -S . -B theirs -DCMAKE_PREFIX_PATH="$prefix" && cmake --build theirs; } >cmake.log 2>&1; then
    cat cmake.log
    echo 'check-install: the CMake project does not build'
    exit 1
  fi
  got=$(theirs/theirs)
  [ "$got" = 26.923 ] || { echo "check-install: the CMake project printed '$got', not 26.923"; exit 1; }
  echo 'check-install: a CMake project with find_package(tiny_compile) builds and runs'
else
  echo 'check-install: skipped for CMake, cmake is missing'
fi
echo "check-install: a program built with pkg-config's flags ($(pkg-config --modversion tiny_compile)) runs, and so does tc"
