#include "exercise.h"

namespace exercise {

// TODO: put formulas in rows and columns in place of the zeros.
Bytes brighten_bytes(int64_t, int64_t) { return {.eager = 0, .compiled = 0}; }

Bytes add_bias_bytes(int64_t, int64_t) { return {.eager = 0, .compiled = 0}; }

Bytes normalise_bytes(int64_t, int64_t) { return {.eager = 0, .compiled = 0}; }

}  // namespace exercise
