#include "tiny_compile/codegen/cpp_matmul.h"
namespace tiny_compile {
int64_t write_matmul(KernelText&) { CHECK(false); return 0; }
bool is_plain_matmul(const Kernel&) { return false; }
}
