#include "runtime/acl/card_limits.h"

#include "runtime/acl/errors.h"

namespace npumesh {

aclError CardLimits::Permit(std::string_view function, std::string_view fact, aclError code,
                            const std::function<size_t()>& live) {
  Status wrong;
  std::call_once(read_, [&] {
    const Result<Card> card = Card::FromProcess();
    wrong = card.status();
    if (card.ok() && *card) findings_ = std::make_unique<CardFindings>(*card);
  });
  if (!wrong.ok()) return Fail(ACL_ERROR_INVALID_PARAM, function, "{}", wrong.message());
  if (findings_ == nullptr) return ACL_SUCCESS;
  const ChipFact* const most = findings_->card().chip->Find(fact);
  if (most == nullptr) return ACL_SUCCESS;
  const size_t held = live();
  if (held < static_cast<size_t>(*findings_->card().chip->Number(fact))) return ACL_SUCCESS;
  CardFinding finding;
  finding.rule = fact;
  finding.where = fmt::format("{}", function);
  finding.text = fmt::format(
      "the process holds {} {} already, those of captured graphs included, and "
      "the card has {}",
      held, fact, most->value);
  finding.code = code;
  finding.mend = fmt::format("destroy {} that are done, and graphs", fact);
  finding.source = most->source;
  const Status found = findings_->Add(std::move(finding));
  return found.ok() ? ACL_SUCCESS : Fail(code, function, "{}", found.message());
}

}  // namespace npumesh
