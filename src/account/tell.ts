// Tells users by mail what they, or somebody in their name, changed of what they log in with.
import { tellOfMethod } from '../delivery/method-notice.ts';
import type { FactorDependencies } from '../factors/factor.ts';
import type { MethodType } from '../records/second-factors.ts';
import type { Actor } from './actor.ts';

type TellDependencies = Pick<FactorDependencies, 'config' | 'messages' | 'rateLimits'>;

/** Posts the message of a change. */
export async function tellChange(
  deps: TellDependencies,
  { user, clientId, ip, languages }: Actor,
  kind: 'method_added' | 'method_removed',
  method: MethodType,
): Promise<void> {
  const application = await deps.config.client(clientId);
  await tellOfMethod(deps, kind, { application, user, languages, ip, method });
}
