// The findings of Yong 2021's figure 6 say what the runs came to, and not what they once came to.
#include "lab/figures/yong_findings.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "lab/figures/figure.h"

namespace streamfs::lab::figures {
namespace {

using testing::Contains;
using testing::HasSubstr;

CopiesMore more(double ngc, double spread, double own) {
  return {{.mean = ngc, .least = ngc - spread / 2, .most = ngc + spread / 2, .seeds = 3},
          {.mean = own, .least = own, .most = own, .seeds = 3}};
}

TEST(YongFindings, SayThatCopiesAreSavedWhereAllSeedsAgree) {
  const auto found = fig6_findings(more(0.2, 0.12, 0.05), more(0.1, 0.02, 0.08));
  EXPECT_THAT(found, Contains(HasSubstr("With drift, vStream-SGC copies less than vStream-NGC: the "
                                        "difference is 0.20 of Legacy's copies (0.14 to 0.26)")));
  EXPECT_THAT(found, Contains(HasSubstr("With drift, 25 % of vStream-SGC's gain")));
  EXPECT_THAT(found, Contains(HasSubstr("Without drift, 80 % of vStream-SGC's gain")));
  EXPECT_THAT(found, Contains(HasSubstr("by 0.10, which is within the spread over seeds (0.12)")));
}

TEST(YongFindings, SayTheOppositeWhereTheRunsDo) {
  const auto found = fig6_findings(more(-0.2, 0.1, 0.05), more(0.1, 0.4, 0.08));
  EXPECT_THAT(found, Contains(HasSubstr("With drift, vStream-SGC copies more than vStream-NGC")));
  EXPECT_THAT(found, Contains(HasSubstr("Without drift, vStream-SGC copies with some seeds less "
                                        "and with others no less than vStream-NGC")));
  EXPECT_THAT(found, Contains(HasSubstr("With drift, vStream-SGC gains nothing")));
  const auto apart = fig6_findings(more(0.5, 0.1, 0.1), more(0.1, 0.1, 0.1));
  EXPECT_THAT(apart, Contains(HasSubstr("by 0.40, which is beyond the spread over seeds (0.10)")));
}

}  // namespace
}  // namespace streamfs::lab::figures
