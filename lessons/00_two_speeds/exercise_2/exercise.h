// 00-2 ★ When is compiling paid?
//
// A function runs in eager_ns nanoseconds as it is. Compiling it costs compile_ns once, and then
// it runs in compiled_ns. After how many calls has compiling cost no more time than it saved?
//   compile 1000, eager 30, compiled 10   =>   50
//   compile 1001, eager 30, compiled 10   =>   51
// That is the least n >= 1 with compile_ns + n * compiled_ns <= n * eager_ns; std::nullopt where
// there is none. No argument is negative.
#pragma once

#include <cstdint>
#include <optional>

namespace exercise {

std::optional<int64_t> calls_until_paid(int64_t compile_ns, int64_t eager_ns,
                                        int64_t compiled_ns);

}  // namespace exercise
