// The logout settings of the tenant file.
import { z } from 'zod';
import { hasUserInfo } from '../http/outbound-rules.ts';

const LOOPBACK = ['localhost', '127.0.0.1', '[::1]'];

/** Whether the server may call a URL, or a page may load it in a frame: https, or http on this machine. */
export function isHttpsOrLoopback(address: string): boolean {
  const url = URL.parse(address);
  if (url === null || hasUserInfo(address)) return false;
  return url.protocol === 'https:' || (url.protocol === 'http:' && LOOPBACK.includes(url.hostname));
}

export const calledAddress = z.string().refine(isHttpsOrLoopback, {
  message: 'must be an https address (http on localhost alone)',
});

const backChannel = {
  /** The URLs that receive logout tokens (OpenID Connect Back-Channel Logout 1.0 §2.2). */
  backchannel_logout_urls: z.array(calledAddress).default([]),
};

/** `oidc_logout` of a client. `oidc_backchannel_logout` is an older name with the URLs alone. */
export const clientLogoutSchema = z.looseObject({
  ...backChannel,
  backchannel_logout_initiators: z
    .looseObject({
      /** `custom`: the selected initiators; `all`: everything that ends a session. */
      mode: z.enum(['custom', 'all']).default('custom'),
      selected_initiators: z.array(z.string()).default(['rp-logout', 'idp-logout']),
    })
    .prefault({}),
  /** Whether logout tokens contain the session's metadata. */
  backchannel_logout_session_metadata: z.looseObject({ include: z.boolean().optional() }).nullish(),
});

export const clientBackChannelSchema = z.looseObject(backChannel);

/** `oidc_logout` of the tenant. */
export const tenantLogoutSchema = z.looseObject({
  /** Whether the discovery document has `end_session_endpoint`. Default: true. */
  rp_logout_end_session_endpoint_discovery: z.boolean().optional(),
});
