// Which NVRTC made a CUBIN is known without opening it. No GPU needed.
#include "tiny_compile/runtime/nvrtc.h"

#include "tests/catch.h"
#include "tests/runtime/scratch.h"
#include "tiny_compile/base/optional_library.h"
#include "tiny_compile/runtime/cuda_executable.h"
#include "tiny_compile/runtime/disk_cache.h"

using namespace tiny_compile;
using namespace tiny_compile::tests;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::StartsWith;

namespace {

struct Place {
  Place() { mkdir(cache.c_str(), 0700); }
  Scratch scratch;
  std::string cache = scratch.path("cache"), library = scratch.path("lib nvrtc.so");

  // As if an earlier process had opened `identity`.
  void remember(const std::string& identity) const {
    store_text(cache, content_key({{"nvrtc in", library_search_state()}}), identity + "\n");
  }
};

bool passes(int version, bool many_kernels, const std::string& option) {
  for (const char* given : nvrtc_options(version, many_kernels)) {
    if (given == option) return true;
  }
  return false;
}

constexpr const char* kKernel =
    "extern \"C\" __global__ void fill(float* to) { to[threadIdx.x] = 1; }\n";

}  // namespace

TEST_CASE("a file's identity changes when it is upgraded in place", "[nvrtc]") {
  const Place place;
  CHECK(file_identity(place.library).empty());
  write_text(place.library, "version 1");
  const std::string first = file_identity(place.library);
  CHECK_THAT(first, ContainsSubstring(place.library + " 9 "));
  CHECK(file_identity(place.library) == first);
  write_text(place.library, "version 10");
  CHECK(file_identity(place.library) != first);
  write_text(place.library, "version 2");  // as long as the first: the time tells
  const timespec later[2] = {{2'000'000'000, 0}, {2'000'000'000, 0}};
  utimensat(AT_FDCWD, place.library.c_str(), later, 0);
  CHECK(file_identity(place.library) != first);
}

TEST_CASE("the state of the search follows the environment and its directories", "[nvrtc]") {
  const Place place;
  const Setting none("LD_LIBRARY_PATH", nullptr);
  const std::string before = library_search_state();
  CHECK(library_search_state() == before);
  const Setting one("LD_LIBRARY_PATH", "/nowhere:" + place.cache);
  const std::string there = library_search_state();
  CHECK(there != before);
  const timespec later[2] = {{2'000'000'000, 0}, {2'000'000'000, 0}};
  utimensat(AT_FDCWD, place.cache.c_str(), later, 0);  // as a file that appears in it does
  CHECK(library_search_state() != there);
}

TEST_CASE("a library that the cache knows is not opened, unless it changed", "[nvrtc]") {
  const Place place;
  write_text(place.library, "not even a library");
  const std::string known = file_identity(place.library);
  place.remember(known);
  CHECK_THAT(nvrtc_identity(place.cache), StartsWith(known + " --fmad=false"));
  if (!why_no_nvrtc().empty()) SKIP(why_no_nvrtc());
  write_text(place.library, "upgraded to something longer");
  const std::string opened = nvrtc_identity(place.cache);
  CHECK_THAT(opened, ContainsSubstring("libnvrtc") && !ContainsSubstring(place.library));
  CHECK(nvrtc_identity(place.cache) == opened);  // remembered from now on
  CHECK(nvrtc_identity("") == opened);
  for (const char* nonsense : {"", " ", "no numbers", "/x 1 2"}) {
    place.remember(nonsense);
    CHECK(nvrtc_identity(place.cache) == opened);
  }
}

TEST_CASE("a CUBIN is compiled once, and again for another NVRTC", "[nvrtc]") {
  if (!why_no_nvrtc().empty()) SKIP(why_no_nvrtc());
  const Place place;
  const Setting cache("TC_CACHE_DIR", place.cache);
  Source source;
  source.text = kKernel;
  CHECK_FALSE(build_cuda(source, "sm_90").from_cache);
  CHECK(build_cuda(source, "sm_90").from_cache);
  CHECK_FALSE(build_cuda(source, "sm_80").from_cache);
  write_text(place.library, "another NVRTC");
  place.remember(file_identity(place.library));
  CHECK_FALSE(build_cuda(source, "sm_90").from_cache);
}

TEST_CASE("units become CUBINs of their own, each compiled once", "[nvrtc]") {
  if (!why_no_nvrtc().empty()) SKIP(why_no_nvrtc());
  const Place place;
  const Setting cache("TC_CACHE_DIR", place.cache);
  Source source;
  source.units = 2;
  source.text =
      "#if TC_UNIT == 0\nextern \"C\" __global__ void first() {}\n#endif\n"
      "#if TC_UNIT == 1\nextern \"C\" __global__ void second() {}\n#endif\n";
  const BuiltCubins built = build_cuda(source, "sm_90"), again = build_cuda(source, "sm_90");
  CHECK_FALSE(built.from_cache);
  CHECK(again.from_cache);
  REQUIRE(built.cubins.size() == 2);
  CHECK_THAT(built.cubins[0], ContainsSubstring("first") && !ContainsSubstring("second"));
  CHECK_THAT(built.cubins[1], ContainsSubstring("second") && !ContainsSubstring("first"));
  source.text += "#if TC_UNIT == 1\nint wrong = nothing;\n#endif\n";
  CHECK_THROWS_WITH(build_cuda(source, "sm_90"),
                    ContainsSubstring("> 8 | int wrong = nothing;"));
}

TEST_CASE("an NVRTC is given the options that its version takes", "[nvrtc]") {
  for (const int version : {1201, 1203, 1204, 1208, 1209, 1300}) {
    INFO(version);
    for (const char* contract : {"--fmad=false", "--std=c++17"})
      CHECK(passes(version, false, contract));
    CHECK(passes(version, false, "--minimal") == (version >= 1204));
    CHECK(passes(version, false, "--no-cache") == (version >= 1209));
    CHECK(passes(version, true, "--split-compile=0") == (version >= 1205));
    CHECK_FALSE(passes(version, false, "--split-compile=0"));
  }
}

TEST_CASE("an error of NVRTC shows the lines that are wrong, not those it warns of",
          "[nvrtc]") {
  if (!why_no_nvrtc().empty()) SKIP(why_no_nvrtc());
  std::string message;
  try {
    compile_cuda(
        "__global__ void warned() {\n  int a;\n  int b;\n  int c;\n}\n"
        "//\n//\n//\n__global__ void wrong() {\n  int d = nothing;\n}\n",
        "sm_90");
  } catch (const Error& error) {
    message = error.what();
  }
  CHECK_THAT(message, ContainsSubstring("warning") &&
                          ContainsSubstring("  9 | __global__ void wrong() {\n"
                                            "> 10 |   int d = nothing;\n  11 | }\n"));
  CHECK_THAT(message, !ContainsSubstring("3 |   int b;"));
}

TEST_CASE("a GPU that NVRTC does not know is told what to do", "[nvrtc]") {
  if (!why_no_nvrtc().empty()) SKIP(why_no_nvrtc());
  CHECK_THROWS_WITH(compile_cuda(kKernel, "sm_999"),
                    StartsWith("NVRTC 1") && ContainsSubstring("cannot compile for sm_999") &&
                        ContainsSubstring("needs a later CUDA Toolkit"));
}

TEST_CASE("an NVRTC that is too old is named, with the least that will do", "[nvrtc]") {
  CHECK(why_not_nvrtc(1201).empty());
  CHECK(why_not_nvrtc(1300).empty());
  CHECK(why_not_nvrtc(1200) == "NVRTC 12.1 or later is needed, this is 12.0");
  CHECK(why_not_nvrtc(1108) == "NVRTC 12.1 or later is needed, this is 11.8");
}
