#include "src/lookup/opened_session.h"

#include "src/lookup/answer.h"

const struct cdacq_session *session_ask_others(struct cdacq_session *session, struct cdacq_method *answer)
{
    const struct cdacq_session *answering = session;
    struct cdacq_session *other;
    for (unsigned next = 0; answer_is_open(answer->answer) && (other = session_next_other(session, &next));) {
        struct cdacq_method method;
        resolver_begin(&other->resolver);
        answer_find(&other->resolver, answer->ip, &method);
        bool verified = answer->module_verified && method.module_verified;
        if (answer_is_better(answer, &method)) {
            *answer = method;
            answering = other;
        } else if (answer->answer == CDACQ_ANSWER_NONE) {
            answer->module_verified = verified;
        }
    }
    return answering;
}
