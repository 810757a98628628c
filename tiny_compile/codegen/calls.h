// Which functions does a generated text call? Whoever prints a call says so, in the same breath:
//
//   out.line(str("sum = ", calls("tc_fma"), "(a, b, sum);"))   =>   sum = tc_fma(a, b, sum);
//
// and the source defines what was said, so that no text is searched for names, in which users
// choose some of the words.
#pragma once

#include <set>
#include <string>

namespace tiny_compile {

class Calls {
 public:
  explicit Calls(bool on_cuda = false) : cuda(on_cuda) {}

  // A function of the prelude or a helper of the back end; returns its name.
  const std::string& operator()(const std::string& name) { return *names_.insert(name).first; }
  bool has(const std::string& name) const { return names_.count(name) > 0; }
  const std::set<std::string>& names() const { return names_; }
  void add(const Calls& other) {
    names_.insert(other.names_.begin(), other.names_.end());
    cuda = cuda || other.cuda;
    doubles = doubles || other.doubles;
  }

  bool cuda;             // a text for CUDA
  bool doubles = false;  // f64 is computed with: overloads for it are wanted

 private:
  std::set<std::string> names_;
};

}  // namespace tiny_compile
