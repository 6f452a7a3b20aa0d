// What a waiting authorization request asks its user for next.
import type { PendingInteraction } from '../engine/interaction.ts';

/** The pages of an interaction. */
export type Step = 'login' | 'signup' | 'consent' | 'account';

/** The step that a request is at, from what the engine asks for and what the application hinted. */
export function nextStep(pending: PendingInteraction): Step {
  if (pending.prompt === 'consent') return 'consent';
  if (pending.prompt === 'select_account' && pending.userId !== undefined) return 'account';
  return pending.params.screen_hint === 'signup' ? 'signup' : 'login';
}

/** Whether a form of this step may be posted for a request: consent is not given by logging in, or the reverse. */
export function accepts(pending: PendingInteraction, posted: Step): boolean {
  if (pending.prompt === 'consent') return posted === 'consent';
  if (posted === 'account') return nextStep(pending) === 'account';
  return posted === 'login' || posted === 'signup';
}
