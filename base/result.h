// Result<T>: an expected failure returns an errno and a sentence; it never throws.
// Thread safety: values.
#pragma once

#include <cerrno>
#include <string>
#include <utility>
#include <variant>

#include "base/assert.h"

namespace streamfs {

// `code` is an errno value (> 0). `context` names the operation that failed, for a log or a user.
struct Error {
  int code = EIO;
  std::string context;
  Error(int errno_code) : code(errno_code) {}  // NOLINT(google-explicit-constructor)
  Error(int errno_code, std::string what) : code(errno_code), context(std::move(what)) {}
  std::string message() const;  // "context: strerror(code)"
};

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::move(value)) {}      // NOLINT(google-explicit-constructor)
  Result(Error error) : state_(std::move(error)) {}  // NOLINT(google-explicit-constructor)

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }
  T& value() & { return checked(); }
  const T& value() const& { return const_cast<Result*>(this)->checked(); }
  T&& value() && { return std::move(checked()); }
  T& operator*() & { return checked(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(checked()); }
  T* operator->() { return &checked(); }
  const T* operator->() const { return &value(); }
  const Error& error() const {
    SFS_ASSERT(!ok());
    return *std::get_if<1>(&state_);
  }

 private:
  T& checked() {
    SFS_ASSERT(ok());
    return *std::get_if<0>(&state_);
  }
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}  // NOLINT(google-explicit-constructor)
  bool ok() const { return error_.code == 0; }
  explicit operator bool() const { return ok(); }
  const Error& error() const {
    SFS_ASSERT(!ok());
    return error_;
  }

 private:
  Error error_{0};
};

}  // namespace streamfs

// If `expr` is an error, returns that error from the enclosing function.
#define SFS_TRY(expr)                                                                        \
  do {                                                                                       \
    if (auto&& sfs_try_result = (expr); !sfs_try_result.ok()) return sfs_try_result.error(); \
  } while (false)

#define SFS_CONCAT_INNER(a, b) a##b
#define SFS_CONCAT(a, b) SFS_CONCAT_INNER(a, b)
// Declares `decl` from the value of `expr`, or returns its error.
// NOLINTBEGIN(bugprone-macro-parentheses): a declaration cannot stand in parentheses.
#define SFS_ASSIGN(decl, expr) SFS_ASSIGN_IMPL(SFS_CONCAT(sfs_result_, __LINE__), decl, expr)
#define SFS_ASSIGN_IMPL(name, decl, expr) \
  auto name = (expr);                     \
  if (!name.ok()) return name.error();    \
  decl = std::move(name).value()
// NOLINTEND(bugprone-macro-parentheses)
