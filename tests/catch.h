// Catch2, version 3 where it is installed, else version 2. Include it last: CHECK is Catch's from
// here on, no longer the one of tiny_compile/base/error.h.
#pragma once

#include "tiny_compile/base/error.h"
#undef CHECK

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
#else
#include <catch2/catch.hpp>
#endif
