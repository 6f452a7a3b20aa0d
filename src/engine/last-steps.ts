// What is done when nobody is asked for anything more, right before a request is answered: the tenant's actions run, which may ask for
// more themselves, and a pushed request is used up. To the engine these are the last prompts of its policy, because it runs nothing else
// of ours there, and goes on to the answer where none of them prompts.
import { interactionPolicy, type KoaContextWithOIDC } from 'oidc-provider';
import type { LoginActions } from './login-actions.ts';
import { LACKS_SECOND_FACTOR, LOGIN_REQUIRED } from './policy.ts';
import type { PushedRequests } from './pushed-requests.ts';

const { Check, Prompt } = interactionPolicy;

interface LastStepDependencies {
  /** @see SecondFactor.description */
  lacksDescription: string;
  pushedRequests: Pick<PushedRequests, 'use'>;
  loginActions: Pick<LoginActions, 'atAuthorization'>;
}

/** The prompts, in the order in which they are to stand after all others. */
export function lastSteps({
  lacksDescription,
  pushedRequests,
  loginActions,
}: LastStepDependencies): interactionPolicy.Prompt[] {
  const use = new Check('request_uri', '', 'invalid_request_uri', async (ctx) => {
    await pushedRequests.use(ctx);
    return Check.NO_NEED_TO_PROMPT;
  });
  return [...actionPrompts(loginActions, lacksDescription), new Prompt({ name: 'request_uri' }, use)];
}

/**
 * What actions ask for: a second factor, as any login that lacks one, or that the user goes elsewhere first. They run once for a
 * request, however many prompts ask for what came of it.
 */
function actionPrompts(actions: Pick<LoginActions, 'atAuthorization'>, lacksDescription: string) {
  const asks = (step: 'factor' | 'redirect' | 'primary') => async (ctx: KoaContextWithOIDC) =>
    (await actions.atAuthorization(ctx))?.step === step;
  const details = async (ctx: KoaContextWithOIDC) => ({
    actions: (await actions.atAuthorization(ctx))?.waiting,
  });
  const factor = [LACKS_SECOND_FACTOR, lacksDescription, 'login_required', asks('factor'), details] as const;
  // What applications know of a user who would have to go elsewhere.
  const elsewhere = ['redirect', 'External interaction required', 'interaction_required'] as const;
  return [
    new Prompt({ name: 'login' }, new Check(...factor)),
    new Prompt({ name: 'redirect' }, new Check(...elsewhere, asks('redirect'), details)),
    new Prompt(
      { name: 'primary' },
      new Check('primary', LOGIN_REQUIRED, 'login_required', asks('primary'), details),
    ),
  ];
}
