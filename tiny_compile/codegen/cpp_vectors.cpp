#include "tiny_compile/codegen/cpp_vectors.h"

#include <algorithm>

namespace tiny_compile {
namespace {

// One after the other is as fast for an eighth of a vector's lanes, and for what takes an eighth of a row.
constexpr int64_t kFewLanes = 8;

}  // namespace

void write_in_vectors(KernelText& text, const std::string& name, int64_t count,
                      const std::function<void()>& body) {
  const Program& program = text.program;
  const std::vector<bool> read = buffers_read(program, text.kernel),
                          written = buffers_written(program, text.kernel);
  int64_t bytes = 8;
  bool again = true;  // may be done again
  for (size_t b = 0; b < program.buffers.size(); b++) {
    if (read[b] || written[b]) bytes = std::min(bytes, size_of(program.buffers[b].type.dtype));
    again = again && !(read[b] && written[b]);
  }
  const int64_t lanes = program.machine.vector / bytes, rest = count % lanes;
  const auto loop = [&](int64_t from, int64_t to) {
    text.out.line("#pragma GCC ivdep");
    return str("for (long long ", name, " = ", from, "; ", name, " < ", to, "; ", name, "++)");
  };
  if (!again || count <= lanes || rest <= lanes / kFewLanes ||
      (kFewLanes - 1) * rest < count / lanes) {
    text.out.open(loop(0, count));
    body();
    return text.out.close();
  }
  text.out.open("");
  text.out.open(
      str("const auto element = [&](long long ", name, ") __attribute__((always_inline))"));
  body();
  text.out.close(";");
  text.out.line(str(loop(0, count - rest), " element(", name, ");"));
  text.out.line(str(loop(count - lanes, count), " element(", name, ");"));
  text.out.close();
}

}  // namespace tiny_compile
