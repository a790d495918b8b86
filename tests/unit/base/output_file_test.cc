// Output files: whole or not there, also after a kill at any point.
#include "base/output_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>

#include "base/result.h"
#include "tests/support/temporary.h"

namespace streamfs {
namespace {

class Output : public ::testing::Test {
 protected:
  std::set<std::string> names() const {
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(directory_.file("")))
      names.insert(entry.path().filename());
    return names;
  }
  std::string content() const {
    std::ifstream in(path_);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  bool has_nameless_files() const {
    const int fd = ::open(directory_.file("").c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0) (void)::close(fd);
    return fd >= 0;
  }

  TemporaryDirectory directory_;
  const std::string path_ = directory_.file("out");
};

TEST_F(Output, IsThereOnceCommittedAndNothingElseIs) {
  ASSERT_TRUE(write_whole(path_, "first").ok());
  EXPECT_EQ(content(), "first");
  ASSERT_TRUE(write_whole(path_, "second").ok());
  EXPECT_EQ(content(), "second");
  EXPECT_EQ(names(), std::set<std::string>{"out"});
}

TEST_F(Output, GivenUpItLeavesWhatWasThere) {
  ASSERT_TRUE(write_whole(path_, "old").ok());
  {
    Result<OutputFile> file = OutputFile::create(path_);
    ASSERT_TRUE(file.ok() && file->write("new").ok());
  }
  EXPECT_EQ(content(), "old");
  EXPECT_EQ(names(), std::set<std::string>{"out"});
}

TEST_F(Output, DoesNotReplaceWhatItMayNot) {
  ASSERT_TRUE(write_whole(path_, "old").ok());
  Result<OutputFile> file = OutputFile::create(path_);
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file->commit(OutputFile::Existing::kRefuse).error().code, EEXIST);
  EXPECT_EQ(content(), "old");
}

TEST_F(Output, AFolderThatIsNotThereIsSaid) {
  EXPECT_EQ(OutputFile::create(directory_.file("no/out")).error().code, ENOENT);
  EXPECT_EQ(OutputFile::create(directory_.file("")).error().code, EISDIR);
}

TEST_F(Output, AKillWhileItIsWrittenLeavesNothing) {
  if (!has_nameless_files()) GTEST_SKIP() << "the file system has no O_TMPFILE";
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    Result<OutputFile> file = OutputFile::create(path_);
    if (!file.ok() || !file->write(std::string(1 << 20, 'x')).ok()) _exit(1);
    (void)::kill(getpid(), SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_TRUE(names().empty());
}

}  // namespace
}  // namespace streamfs
