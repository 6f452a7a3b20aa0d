// Front-channel logout (OpenID Connect Front-Channel Logout 1.0 §3): URLs of applications that the signed-out page
// loads in frames, so that they end their own sessions in this browser.
import type { UserSession } from '../../engine/user-session.ts';
import { withParameters } from '../../http/query.ts';
import type { Config } from '../../tenant/config.ts';

/** Returns the front-channel logout URLs of a session's applications, with `iss` and `sid`. */
export async function frontChannelFrames(
  config: Config,
  issuer: string,
  { clientIds, sid }: Pick<UserSession, 'clientIds' | 'sid'>,
): Promise<string[]> {
  const clients = await Promise.all(clientIds.map((clientId) => config.client(clientId)));
  return clients.flatMap((client) => {
    if (client?.frontchannel_logout_uri === undefined) return [];
    return [withParameters(client.frontchannel_logout_uri, { iss: issuer, sid })];
  });
}
