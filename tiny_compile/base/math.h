// The prelude as C++: tiny_compile::prelude::tc_exp and the rest, the same text that generated
// kernels paste (codegen/prelude.h).
#pragma once

namespace tiny_compile::prelude {

// Bit 0: an index was out of range; bit 1: an integer was divided by zero. See graph/lanes.h.
inline thread_local unsigned error_word = 0;

#define TC_FN static inline
#define TC_FAIL(code) (error_word |= (code))
#include "tiny_compile/base/prelude.h"
#include "tiny_compile/base/prelude_halves.h"
#include "tiny_compile/base/prelude_integers.h"
#include "tiny_compile/base/prelude_math.h"
#include "tiny_compile/base/prelude_normal.h"
#include "tiny_compile/base/prelude_random.h"
#include "tiny_compile/base/prelude_short.h"
#include "tiny_compile/base/prelude_trig.h"

// These use what stands above.
#include "tiny_compile/base/prelude_arc.h"
#include "tiny_compile/base/prelude_gamma.h"
#include "tiny_compile/base/prelude_logistic.h"

}  // namespace tiny_compile::prelude
