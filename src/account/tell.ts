// Tells users by mail what was changed of what they log in with: whoever did not do it hears of it.
import type { Messages } from '../delivery/messages.ts';
import type { Config } from '../tenant/config.ts';
import type { Actor } from './actor.ts';
import type { MethodType } from './views.ts';

export interface TellDependencies {
  config: Config;
  messages: Messages;
}

/** Posts the message of a change, to the address that the account had before it. */
export async function tellChange(
  { config, messages }: TellDependencies,
  { user, clientId, ip, languages }: Actor,
  kind: 'method_added' | 'method_removed',
  method: MethodType,
): Promise<void> {
  if (user.email === undefined) return;
  const application = await config.client(clientId);
  await messages.post(kind, { to: user.email, application, user, languages, ip, method });
}
