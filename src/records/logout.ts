// What the tenant file says of logging out.
import { z } from 'zod';
import { hasUserInfo } from '../http/outbound-rules.ts';

const LOOPBACK = ['localhost', '127.0.0.1', '[::1]'];

/** Whether a server may call an address, or a page of ours frame it: https, or http on this machine. */
export function isHttpsOrLoopback(address: string): boolean {
  const url = URL.parse(address);
  if (url === null || hasUserInfo(address)) return false;
  return url.protocol === 'https:' || (url.protocol === 'http:' && LOOPBACK.includes(url.hostname));
}

export const calledAddress = z.string().refine(isHttpsOrLoopback, {
  message: 'must be an https address (http on localhost alone)',
});

const backChannel = {
  /** Where logout tokens are posted (OpenID Connect Back-Channel Logout 1.0 §2.2). */
  backchannel_logout_urls: z.array(calledAddress).default([]),
};

/** An application's `oidc_logout`; `oidc_backchannel_logout` is its older name, for the addresses alone. */
export const clientLogoutSchema = z.looseObject({
  ...backChannel,
  backchannel_logout_initiators: z
    .looseObject({
      /** `custom`: the initiators selected; `all`: whatever ends a session. */
      mode: z.enum(['custom', 'all']).default('custom'),
      selected_initiators: z.array(z.string()).default(['rp-logout', 'idp-logout']),
    })
    .prefault({}),
  /** Whether its logout tokens say what is noted of the session. */
  backchannel_logout_session_metadata: z.looseObject({ include: z.boolean().optional() }).nullish(),
});

export const clientBackChannelSchema = z.looseObject(backChannel);

/** The tenant's `oidc_logout`. */
export const tenantLogoutSchema = z.looseObject({
  /** Whether the discovery document has `end_session_endpoint`; it has unless this is false. */
  rp_logout_end_session_endpoint_discovery: z.boolean().optional(),
});
