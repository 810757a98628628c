// Catch2, version 3 where it is installed, else version 2, and what 2 lacks. From here on CHECK
// is Catch's, no longer the one of tiny_compile/base/error.h: include this last.
#pragma once

#include "tiny_compile/base/error.h"
#undef CHECK

#if __has_include(<catch2/catch_all.hpp>)
#define TC_CATCH_VERSION 3
#include <catch2/catch_all.hpp>
#else
#define TC_CATCH_VERSION 2
#include <catch2/catch.hpp>
namespace Catch {
using Detail::Approx;
}
namespace Catch::Matchers {
using Catch::Contains;
using Catch::EndsWith;
using Catch::Equals;
using Catch::StartsWith;
inline auto ContainsSubstring(const std::string& text) { return Catch::Contains(text); }
}  // namespace Catch::Matchers
#endif

// SKIP("no GPU") ends a test case that cannot run here; `make test` counts it as skipped.
#ifndef SKIP
#define TC_OWN_SKIP 1
namespace tiny_compile::tests {
inline bool skip_requested = false;  // tests/main.cpp reads and clears it after each case
}
#define SKIP(reason)                              \
  do {                                            \
    WARN("skipped: " << reason);                  \
    ::tiny_compile::tests::skip_requested = true; \
    throw Catch::TestFailureException();          \
  } while (false)
#endif
