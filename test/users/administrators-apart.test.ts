// What may show no administrator cannot be given them: the compiler refuses it, and this file compiles only while it does.
import type { ExchangedUserDependencies } from '../../src/features/connections/exchange/exchange-user.ts';
import type { ManagementFeatureDependencies } from '../../src/features/management/management-feature.ts';
import type { FullConfig, TenantConfig } from '../../src/tenant/config.ts';
import type { Administrators, AllUsers } from '../../src/users/administrators.ts';
import type { TenantUsers, Users } from '../../src/users/users.ts';

/** Compiles if `A` may be handed over where `B` is asked for. */
type Fits<A extends B, B> = A;

type ManagementUsers = ManagementFeatureDependencies['users'];
type ManagementConfig = ManagementFeatureDependencies['config'];

describe('the types of users and configuration', () => {
  it('do not let the Management API or an action have the administrators', () => {
    type Refused = [
      // @ts-expect-error: the users with the administrators
      Fits<AllUsers, ManagementUsers>,
      // @ts-expect-error: the administrators
      Fits<Administrators, ManagementUsers>,
      // @ts-expect-error: users of which the type does not say whether administrators are among them
      Fits<Users, ManagementUsers>,
      // @ts-expect-error: the configuration with the console
      Fits<FullConfig, ManagementConfig>,
      // @ts-expect-error: for actions, the users with the administrators
      Fits<AllUsers, ExchangedUserDependencies['users']>,
    ];
    type Accepted = [Fits<TenantUsers, ManagementUsers>, Fits<TenantConfig, ManagementConfig>];
    const checked: [Refused, Accepted] | undefined = undefined;
    return checked;
  });
});
