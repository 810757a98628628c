// How a scan reads in C, whatever its operator: what the C++ and the CUDA families share.
#pragma once

#include <string>
#include <vector>

#include "tiny_compile/codegen/cpp_kernel.h"
#include "tiny_compile/loops/scan_rules.h"

namespace tiny_compile {

// The words for one Scan step, or for a Reduce step that is a scan's total.
struct ScanText {
  // `place`: the type that a place in a row has.
  ScanText(const Kernel& kernel, const Step& step, const std::string& place = "long long");

  std::string name;  // of a struct of scan_helpers
  std::string op;    // the struct: "tc_cumsum_float", or "tc_cummax_float<int>"
  std::string type;  // of what is combined: "float", or "tc_latest<float, int>"
  int levels;        // groups, groups of groups, ... as the row's length asks for
  bool places;       // whether results are places (of cummax and cummin)

  std::string of(const std::string& a, const std::string& b) const;          // "op::of(a, b)"
  std::string lifted(const std::string& value, const std::string& e) const;  // of element e
  std::string result(const std::string& value) const;                        // what is stored
  std::string groups() const;                                                // the state's type
};

// The structs and functions that scans of these kernels use, for both targets; adds what these call.
std::string scan_helpers(const std::vector<const Kernel*>& kernels, Calls& calls);
std::string scan_helpers(const std::vector<Program>& programs,
                         Calls& calls);  // of all of theirs

// One row by one thread: `store` is the text of a result's place in memory. A total goes to the
// register rN, which is declared already.
void write_scan_row(KernelText& text, const Step& step, int number, const std::string& place,
                    const std::vector<bool>& defined);

}  // namespace tiny_compile
