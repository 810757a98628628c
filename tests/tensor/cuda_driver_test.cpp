// What a child of fork is told about the GPU: by the driver, where there is one, and by stubs.
#include "tiny_compile/tensor/cuda_driver.h"

#include <regex>

#include "tests/catch.h"
#include "tests/runtime/scratch.h"

using namespace tiny_compile;
using namespace tiny_compile::tests;
using Catch::Matchers::ContainsSubstring;

namespace {

constexpr const char* kName = "a child of fork is told that CUDA does not survive it";

// A driver with one GPU that does nothing: each function that ours looks for, and "right".
std::string stubs() {
  const std::string ours = text_of("tiny_compile/tensor/cuda_driver.cpp");
  const std::regex symbol("X\\(\\w+, \"(cu\\w+)\"");
  std::string text =
      "int cuDeviceGetCount(int* n) { *n = 1; return 0; }\n"
      "int cuDevicePrimaryCtxRetain(void** c, int d) { *c = c; return d; }\n";
  for (std::sregex_iterator at(ours.begin(), ours.end(), symbol), end; at != end; ++at) {
    const std::string name = (*at)[1];
    if (text.find(name + "(") == std::string::npos)
      text += "int " + name + "() { return 0; }\n";
  }
  return text;
}

std::string output_of(const std::string& command) {
  std::string text;
  FILE* pipe = popen(command.c_str(), "r");
  for (int c; (c = fgetc(pipe)) != EOF;) text += static_cast<char>(c);
  pclose(pipe);
  return text;
}

}  // namespace

TEST_CASE(kName, "[cuda][fork]") {
  if (!why_no_cuda().empty()) SKIP(why_no_cuda());
  REQUIRE(cuda_device_count() > 0);
  { const CudaScope used(0); }
  CHECK(in_child([] {
          const std::string said = message_of([] { const CudaScope scope(0); });
          const bool told = said.find("CUDA does not survive fork") != std::string::npos &&
                            why_no_cuda().find("fork") != std::string::npos;
          return told && cuda_device_count() == 0 ? 0 : 1;
        }) == 0);
  { const CudaScope still_here(0); }
}

TEST_CASE("a child of fork is told so, with stubs in place of a driver", "[fork]") {
  const Scratch scratch;
  write_text(scratch.path("stubs.c"), stubs());
  const std::string compile = "g++ -w -x c -shared -fPIC " + scratch.path("stubs.c") + " -o " +
                              scratch.path("libcuda.so.1");
  if (system((compile + " 2>/dev/null").c_str()) != 0) SKIP("no g++ to make a driver of stubs");
  const Setting path("LD_LIBRARY_PATH", scratch.path(""));
  char self[4096] = "";
  REQUIRE(readlink("/proc/self/exe", self, sizeof self - 1) > 0);
  CHECK_THAT(output_of(std::string(self) + " '" + kName + "' 2>&1"),
             ContainsSubstring("All tests passed (2 assertions"));
}
