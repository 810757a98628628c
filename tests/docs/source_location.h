// For clang-tidy 14 and 15, which know no std::source_location: what the code uses of it. Later ones
// bring their own.
#pragma once

#include <source_location>

#ifndef __cpp_lib_source_location
namespace std {
struct source_location {
  static constexpr source_location current(const char* file = __builtin_FILE(),
                                           unsigned line = __builtin_LINE()) {
    return {file, line};
  }
  constexpr const char* file_name() const { return file; }
  constexpr unsigned line() const { return number; }
  constexpr unsigned column() const { return 0; }
  constexpr const char* function_name() const { return ""; }
  const char* file = "";
  unsigned number = 0;
};
}  // namespace std
#endif
