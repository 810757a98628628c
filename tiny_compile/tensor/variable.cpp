// Where is a captured tensor read from? A function may pass its weights by value, or copy them
// first; what the next call must look at is the variable that the first copy was made of:
//
//   Tensor scaled(Tensor x, Tensor w) { return x * w; }    its w is a copy, soon gone
//   compile([&model](Tensor x) { return scaled(x, model.w); })   =>   model.w, at each call
//
// Each Tensor object may own a life, a byte whose owner is never copied, moved or assigned with
// the value. That the object is gone is seen in the life's weak pointers.
#include "tiny_compile/tensor/variable.h"

#include <mutex>

#include "tiny_compile/tensor/tensor.h"

namespace tiny_compile {

constinit thread_local Origins* Origins::current_ = nullptr;

Variable::Variable(const Tensor& at) : at_(&at) {
  static std::mutex mutex;  // several threads may trace functions that share a variable
  const std::lock_guard lock(mutex);
  if (!at.life_) at.life_ = std::make_shared<char>();
  life_ = at.life_;
}

Variable Origins::of(const Tensor& tensor) const {
  const auto known = origins_.find(&tensor);
  const bool is_copy = known != origins_.end() && known->second.held == tensor.handle() &&
                       known->second.variable.exists();
  return is_copy ? known->second.variable : Variable(tensor);
}

void Origins::copied(const Tensor& to, const Tensor& from) {
  if (!from.defined() || from.is_traced()) return;
  origins_.insert_or_assign(&to, Origin{from.handle(), of(from)});
}

void Origins::moved(const Tensor& to, const Tensor& from) noexcept {
  origins_.erase(&to);
  auto known = origins_.extract(&from);
  if (known.empty()) return;
  known.key() = &to;
  origins_.insert(std::move(known));
}

}  // namespace tiny_compile
