// The steps that run right before a request is answered, when nothing more has to be asked: the tenant's actions,
// which may ask for more themselves, and using up a pushed request. They are the last prompts of the engine's
// policy, because the engine offers no other hook there; it answers the request when none of them prompts.
import { interactionPolicy, type KoaContextWithOIDC } from 'oidc-provider';
import type { LoginActions } from '../login/login-actions.ts';
import { LACKS_SECOND_FACTOR, LOGIN_REQUIRED } from '../login/policy.ts';
import type { PushedRequests } from './pushed-requests.ts';

const { Check, Prompt } = interactionPolicy;

interface LastStepDependencies {
  /** @see SecondFactor.description */
  lacksFactorDescription: string;
  pushedRequests: Pick<PushedRequests, 'use'>;
  loginActions: Pick<LoginActions, 'atAuthorization'>;
}

/** Returns the prompts that come after all others, in their order. */
export function lastSteps({
  lacksFactorDescription,
  pushedRequests,
  loginActions,
}: LastStepDependencies): interactionPolicy.Prompt[] {
  const use = new Check('request_uri', '', 'invalid_request_uri', async (ctx) => {
    await pushedRequests.use(ctx);
    return Check.NO_NEED_TO_PROMPT;
  });
  return [...actionPrompts(loginActions, lacksFactorDescription), new Prompt({ name: 'request_uri' }, use)];
}

/**
 * The prompts for what actions ask for: a second factor, a redirect, or a login as another user. The actions run
 * once for a request, however many of these prompts ask for their outcome.
 */
function actionPrompts(actions: Pick<LoginActions, 'atAuthorization'>, lacksFactorDescription: string) {
  const asks = (step: 'factor' | 'redirect' | 'primary') => async (ctx: KoaContextWithOIDC) =>
    (await actions.atAuthorization(ctx))?.step === step;
  const details = async (ctx: KoaContextWithOIDC) => ({
    actions: (await actions.atAuthorization(ctx))?.waiting,
  });
  const factor = [
    LACKS_SECOND_FACTOR,
    lacksFactorDescription,
    'login_required',
    asks('factor'),
    details,
  ] as const;
  // SDKs know this error for a silent request whose user would have to be redirected.
  const redirect = ['redirect', 'External interaction required', 'interaction_required'] as const;
  return [
    new Prompt({ name: 'login' }, new Check(...factor)),
    new Prompt({ name: 'redirect' }, new Check(...redirect, asks('redirect'), details)),
    new Prompt(
      { name: 'primary' },
      new Check('primary', LOGIN_REQUIRED, 'login_required', asks('primary'), details),
    ),
  ];
}
