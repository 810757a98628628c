// The text of one CUDA kernel under construction: what its families share.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tiny_compile/base/integer.h"
#include "tiny_compile/codegen/cpp_kernel.h"
#include "tiny_compile/codegen/cuda.h"
#include "tiny_compile/codegen/cuda_signature.h"

namespace tiny_compile {

// A KernelText whose loads and stores may move several neighbouring elements at once, as a
// tc_pack<float, 4>, where they are contiguous along one symbol.
class CudaText : public KernelText {
 public:
  CudaText(const Program& program, const Kernel& kernel, Starts starts = Starts::Kernel);

  // extern "C" __global__ void f(const float* __restrict__ in_x, ..., const int size_n) {
  // or, of a group's, where blockIdx and the number of points are parameters,
  // static __device__ void block_of_f(const tc_block blockIdx, const int points, ...) {
  // Blocks stand in clusters of `cluster`, which is more than 1 for sm_90 and later only.
  // `resident` blocks at least fit a multiprocessor: the compiler may use all registers up to
  // that for loads in flight; 0 leaves it to the compiler.
  KernelEntry begin(const std::string& function, const Expr& grid, int block, int cluster = 1,
                    int resident = 0);

  std::string attributes;  // of the kernel that begin() began: "__launch_bounds__(256) "
  std::string pointer_type(int buffer);  // "const float*"
  bool is_counted() const { return starts_ == Starts::Counted; }

  // Elements a thread may move at once along `axis`, if its counter starts at multiples of that:
  // as many as 16 bytes hold and as divide `extent` and the addresses of these steps' accesses; 1
  // if there are no more.
  int widest(const std::vector<const Step*>& steps, int axis, int64_t extent) const;
  // From now on, accesses contiguous along `axis` are packs of `vector`; 1 ends it.
  void set_vector(int axis, int vector);
  bool is_wide(const Expr& index, int buffer) const;
  bool in_pack(int load) const;  // once load_packs() has read it

  // The packs that start at `axis` = e: const tc_pack<float, 4> pack_3 = ...;
  void load_packs(const std::vector<int>& ids, const std::vector<bool>& defined);
  void declare_store_packs(const std::vector<const Step*>& steps);
  void write_store(const Step& step);  // one element; into the pack where the store is wide
  void store_packs(const std::vector<const Step*>& steps);

  // Declares what divides many elements, once for all of them.
  void declare_divisor(int scalar);
  void forget_divisor(int scalar) { divisors_.erase(scalar); }
  // Quotients by a declared divisor and, with `hastens_exp`, exponentials have a fast form that is
  // right for most values, and a slow one that is right for all.
  enum class Form {
    Each,  // each element asks which it needs
    Fast,  // all fast; one that would be wrong clears the flag `exact`
    Slow   // all slow: what is done again where the flag is cleared
  };
  Form form = Form::Each;
  bool hastens_exp = false;
  bool knows_highest = false;  // `exact` starts as what is known of all exponents

  // "pack_3.at[v]", or what tc_to_f32 takes of a pack of halves.
  std::string element_of_pack(const std::string& pack, DType dtype);
  std::string place(const Step& step) const;  // "out_y[i0*8 + j0]"
  // The variable that notes an index out of range, which the kernel's end tells; "": told at once, by
  // a branch that keeps what follows it behind what comes before.
  std::string wrong;
  std::string left;  // elements left from e on, where a pack may end beyond them; else ""

 private:
  Starts starts_;
  std::optional<std::string> guard_of(int load, const std::vector<bool>& defined);
  // A comparison of an index with another, with a constant or, if it is eq, with data, done with
  // ints; else "".
  std::string compared(const Scalar& scalar);
  std::string at_start(const Expr& index, const std::vector<int>& operands = {}) const;
  bool is_read_once(int scalar) const;
  bool has_fast_form(const Scalar& scalar) const;
  std::set<int> divisors_;   // scalars declared as such
  std::set<int> guarded_;    // loads of packs, read where all elements' guards are true
  std::set<int> unrounded_;  // halves that only a pack's store reads
  int axis_ = -1;
  int vector_ = 1;
};

// Every step of the kernel.
std::vector<const Step*> all_steps(const Kernel& kernel);

}  // namespace tiny_compile
