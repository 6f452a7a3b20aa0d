// Tells users by mail which authentication methods were added or removed, in case somebody else did it.
import { sendMethodNotice } from '../../capabilities/delivery/method-notice.ts';
import type { MethodType } from '../../records/second-factors.ts';
import type { FactorDependencies } from '../factors/factor.ts';
import type { Actor } from './actor.ts';

type NoticeDependencies = Pick<FactorDependencies, 'config' | 'messages' | 'rateLimits'>;

/** Mails the user a notice that an authentication method was added or removed. */
export async function notifyOfMethod(
  deps: NoticeDependencies,
  { user, clientId, ip, languages }: Actor,
  kind: 'method_added' | 'method_removed',
  method: MethodType,
): Promise<void> {
  const application = await deps.config.client(clientId);
  await sendMethodNotice(deps, kind, { application, user, languages, ip, method });
}
