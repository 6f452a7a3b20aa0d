// Decides the next step of a waiting authorization request. It is decided only here.
import type { PendingInteraction } from '../../engine/pending-interaction.ts';

/**
 * The steps: login, second factor, the offer to link an account, another offer (a passkey), account choice,
 * consent, the name of an organization, the choice of one, the redirect of an action, the login of the user whom an
 * action has named.
 */
type Step =
  | 'login'
  | 'factor'
  | 'link'
  | 'offer'
  | 'account'
  | 'consent'
  | 'organization_name'
  | 'organization'
  | 'redirect'
  | 'primary';

type RequestState = Pick<PendingInteraction, 'prompt' | 'userId' | 'firstFactor' | 'link' | 'offer'>;

/** Returns the next step of a request. */
export function nextStep({ prompt, userId, firstFactor, link, offer }: RequestState): Step {
  if (prompt === 'consent' || prompt === 'organization_name' || prompt === 'organization') return prompt;
  if (prompt === 'redirect') return prompt;
  if (link?.isAccepted === false) return 'link';
  if (offer?.isAnswered === false) return 'offer';
  if (firstFactor !== undefined) return 'factor';
  if (prompt === 'primary') return prompt;
  return prompt === 'select_account' && userId !== undefined ? 'account' : 'login';
}

/** Whether the request accepts a login: also at the account choice, not at consent. */
export function waitsForLogin({ prompt }: Pick<RequestState, 'prompt'>): boolean {
  return prompt === 'login' || prompt === 'select_account';
}

/** Whether the user may keep the logged-in account, also after starting to log in to another. */
export function mayKeepAccount({ prompt, userId }: RequestState): boolean {
  return (
    nextStep({ prompt, userId, firstFactor: undefined, link: undefined, offer: undefined }) === 'account'
  );
}
