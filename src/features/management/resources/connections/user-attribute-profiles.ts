// `/user-attribute-profiles`: mappings from members of identity providers to members of users. They are stored for
// tools.
import { z } from 'zod';
import { merged } from '../../resource.ts';
import { isObject } from '../../section.ts';
import type { StoredSetting } from '../base/stored-setting.ts';

const object = z.record(z.string(), z.unknown());
const SAML_CLAIMS = 'http://schemas.xmlsoap.org/ws/2005/05/identity/claims';

/** Returns the mapping of a user's id, with defaults for what a body leaves out. */
function userIdOf(asked: unknown): object {
  return {
    oidc_mapping: 'sub',
    saml_mapping: ['nameidentifier', 'upn', 'name'].map((claim) => `${SAML_CLAIMS}/${claim}`),
    scim_mapping: 'externalId',
    ...(isObject(asked) && merged({}, asked)),
  };
}

export const userAttributeProfiles: StoredSetting = {
  path: '/user-attribute-profiles',
  name: 'user attribute profile',
  noun: 'user_attribute_profiles',
  prefix: 'uap',
  key: 'user_attribute_profiles',
  hasDates: false,
  isCursorOnly: true,
  required: { name: z.string().min(1).max(255), user_attributes: object },
  optional: { user_id: object },
  generated: (_deps, { user_id }) => ({ user_id: userIdOf(user_id) }),
  change: (before, asked) => {
    const after = merged(before, asked);
    return 'user_id' in asked ? { ...after, user_id: userIdOf(asked.user_id) } : after;
  },
};
