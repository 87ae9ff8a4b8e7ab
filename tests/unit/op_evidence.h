// Evidence: which operators a test program ran, on which dtypes, and how near their results had to
// be to what the test expected. tests/operator_evidence.py makes a page of it.
//
// Nothing is kept unless NPUMESH_OPERATOR_EVIDENCE names a folder; each program then leaves a file
// there when it ends. Of a test case every operator counts that ran in it without an error; it is
// compared exactly unless the case has an EXPECT_NEAR.
//
// Results: with NPUMESH_OPERATOR_RESULTS each program leaves a file named like itself there, with a
// line for each call that ran: test, operator and a hash of the outputs' bits. Two builds agree
// when their lines are the same in any order (tests/compare_operator_results.py).
//
// Thread-safety: all members may be called from any thread (ranks are threads).
#ifndef NPUMESH_TESTS_UNIT_OP_EVIDENCE_H_
#define NPUMESH_TESTS_UNIT_OP_EVIDENCE_H_

#include <gtest/gtest.h>

#include <vector>

#include "graph/ops/core/operator.h"

namespace npumesh::op_test {

// A kernel of the node has run, and what it has given.
void NoteRun(const OpContext& context);
void NoteOutputs(const OpContext& context, const std::vector<Tensor>& outputs);

// A result may differ from `expected` by `error`.
void NoteNear(double expected, double error);

testing::AssertionResult NearAndNoted(const char* actual, const char* expected, const char* what,
                                      double a, double b, double error);

}  // namespace npumesh::op_test

// GoogleTest's own, but what it allows is noted.
#undef EXPECT_NEAR
#define EXPECT_NEAR(actual, expected, error) \
  EXPECT_PRED_FORMAT3(::npumesh::op_test::NearAndNoted, actual, expected, error)

#endif  // NPUMESH_TESTS_UNIT_OP_EVIDENCE_H_
