// The variables that tensors stand in. A compiled function reads what it captured from the
// variable it saw it in, at each call; so it must know that variable, and when it is gone.
#pragma once

#include <map>
#include <memory>

namespace tiny_compile {

class Tensor;
struct TensorData;

// A Tensor object of the user's: a local, a static, a member, an element of a vector. It exists
// until it is destroyed; assigning to it, or moving from it, changes what it holds.
class Variable {
 public:
  Variable() = default;  // of none: does not exist
  explicit Variable(const Tensor& at);

  bool exists() const { return !life_.expired(); }
  const Tensor& operator*() const { return *at_; }  // only while it exists
  bool operator<(const Variable& other) const { return life_.owner_before(other.life_); }

 private:
  const Tensor* at_ = nullptr;
  std::weak_ptr<const void> life_;  // of the one that the object owns
};

// While it lives: which variable was a tensor read from, on this thread, by way of however many
// copies? The innermost of a thread is told.
//
//   Tensor copy = model.weight;   of(copy) is model.weight
class Origins {
 public:
  Origins() : outer_(current_) { current_ = this; }
  ~Origins() { current_ = outer_; }
  Origins(const Origins&) = delete;
  Origins& operator=(const Origins&) = delete;

  static Origins* current() { return current_; }
  Variable of(const Tensor& tensor) const;

  // Told by Tensor itself; `to` holds what `from` held.
  void copied(const Tensor& to, const Tensor& from);
  void moved(const Tensor& to, const Tensor& from) noexcept;

 private:
  struct Origin {
    std::shared_ptr<const TensorData> held;  // it counts while the copy holds this
    Variable variable;
  };
  Origins* outer_;
  std::map<const Tensor*, Origin> origins_;  // of copies
  static constinit thread_local Origins* current_;
};

}  // namespace tiny_compile
