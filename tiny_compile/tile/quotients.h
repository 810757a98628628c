// Sums of minima and of quotients in a form of which bounds are seen.
#pragma once

#include "tiny_compile/base/expr.h"

namespace tiny_compile {

// a + min(b, c)  =>  min(a + b, a + c), where that is the only one.
Expr with_min_outside(const Expr& sum);

// a/n + (a%n*k + b)/(n*k)  =>  (a*k + b)/(n*k)
Expr joined_quotients(const Expr& value);

}  // namespace tiny_compile
