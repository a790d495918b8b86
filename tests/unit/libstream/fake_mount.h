// A streamfs mount that is none: this binary's own ioctl, fstat and *xattr answer
// for files below one folder as the filesystem would, and go to the kernel for all others. The
// library's calls find them because a program's symbols come before libc's. Not thread-safe but for
// the count of questions.
#pragma once

#include <atomic>
#include <map>
#include <string>
#include <vector>

#include "base/wire/hint_ioctl.h"

struct FakeMount {
  std::string root;     // empty: nothing is mounted
  unsigned device = 0;  // its device number; 0: that of the folder
  int errno_of_every_answer = 0;
  bool takes_labels = true;
  bool older = false;                             // knows the first questions only
  std::map<std::string, streamfs_hint> files;     // by path
  std::map<std::string, std::string> attributes;  // user.streamfs.vstream by path of a directory
  std::vector<streamfs_hint> asked;
  std::atomic<int> questions_elsewhere{0};
};
FakeMount& fake_mount();

// A fresh folder, the fake mount's root while it lives.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  std::string file(const std::string& name) const;  // made, empty
  std::string folder(const std::string& name) const;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};
