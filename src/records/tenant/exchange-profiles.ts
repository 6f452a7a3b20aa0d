// Profiles of custom token exchange: which action validates subject tokens of which type (RFC 8693 §2.1).

import type { Frozen } from '../base/record.ts';
import { type BoundAction, deployedOf } from './actions.ts';
import type { DocumentRecord } from './documents.ts';
import { CUSTOM_AUTHENTICATION, isReservedType } from './exchange-profile-schema.ts';

/** The kind of the documents that hold profiles. */
export const EXCHANGE_PROFILE = 'token-exchange-profiles';

export interface ExchangeProfile {
  name: string;
  /** Undefined if the action does not exist or is not deployed. */
  action: BoundAction | undefined;
}

/**
 * Returns the profiles of a tenant by subject token type.
 * @param profiles the documents of profiles.
 * @param actions the documents of actions.
 * @param modules the documents of modules.
 */
export function exchangeProfilesOf(
  profiles: readonly Frozen<DocumentRecord>[],
  actions: readonly Frozen<DocumentRecord>[],
  modules: readonly Frozen<DocumentRecord>[],
): ReadonlyMap<string, ExchangeProfile> {
  return new Map(
    profiles
      .filter(
        ({ body: { type = CUSTOM_AUTHENTICATION, subject_token_type: subject } }) =>
          type === CUSTOM_AUTHENTICATION && !isReservedType(subject),
      )
      .map(({ body }) => {
        const found = actions.find(({ id }) => id === body.action_id);
        const deployed = found && deployedOf(found, modules);
        const action = deployed && { ...deployed, isOptional: false };
        return [String(body.subject_token_type), { name: String(body.name), action }];
      }),
  );
}
