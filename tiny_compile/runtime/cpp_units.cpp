// How is a long text compiled on all cores? Every process reads the same text and keeps the unit
// that its TC_UNIT names, so that messages count lines in the text that a person can read:
//
//   g++ -DTC_UNIT=0 -c -o kernels.so.0.o -  |  g++ -DTC_UNIT=1 -c ..  |  ..     then g++ -o kernels.so
#include "tiny_compile/runtime/cpp_units.h"

#include "tiny_compile/base/error.h"
#include "tiny_compile/runtime/side_by_side.h"

namespace tiny_compile {
namespace {

bool succeeded(const ProcessResult& result) {
  return result.exit_code == 0 && result.signal == 0 && !result.timed_out;
}

std::vector<std::string> with(std::vector<std::string> argv,
                              const std::vector<std::string>& more) {
  argv.insert(argv.end(), more.begin(), more.end());
  return argv;
}

}  // namespace

ProcessResult compile_units(const CompilerCall& call, const std::string& source, int units,
                            const std::string& target) {
  std::vector<ProcessResult> results(static_cast<size_t>(units));
  std::vector<std::string> objects;
  for (int u = 0; u < units; u++) objects.push_back(str(target, ".", u, ".o"));
  side_by_side(units, [&](int u) {
    const std::vector<std::string> argv =
        with(call.argv, {str("-DTC_UNIT=", u), "-c", "-o", objects[u], "-"});
    results[u] = run_process(argv, source, call.timeout_seconds, call.settings);
    return succeeded(results[u]);
  });
  for (const ProcessResult& result : results) {
    if (!succeeded(result)) return result;
  }
  const std::vector<std::string> link = with({"-o", target, "-x", "none"}, objects);
  return run_process(with(call.argv, link), "", call.timeout_seconds, call.settings);
}

}  // namespace tiny_compile
