// Tells users by mail what they, or somebody in their name, changed of what they log in with.
import type { Messages } from '../delivery/messages.ts';
import { tellOfMethod } from '../delivery/method-notice.ts';
import type { MethodType } from '../records/authenticators.ts';
import type { Config } from '../tenant/config.ts';
import type { Actor } from './actor.ts';

export interface TellDependencies {
  config: Config;
  messages: Messages;
}

/** Posts the message of a change. */
export async function tellChange(
  { config, messages }: TellDependencies,
  { user, clientId, ip, languages }: Actor,
  kind: 'method_added' | 'method_removed',
  method: MethodType,
): Promise<void> {
  const application = await config.client(clientId);
  await tellOfMethod(messages, kind, { application, user, languages, ip, method });
}
