// The accounts at other providers that a user has connected, without their tokens.
import { z } from 'zod';
import { connectedAccountsOf, connectedAccountView } from '../../../../users/users-connected-accounts.ts';
import { type Call, callsWith, ok } from '../../call.ts';
import { arrayAnswer, cursorQuery } from '../../list.ts';
import { type UsersDependencies, userOf } from './user-calls.ts';

const call = callsWith<Pick<UsersDependencies, 'store' | 'users'>>();

export const connectedAccountCalls: Call<Pick<UsersDependencies, 'store' | 'users'>>[] = [
  call({
    method: 'GET',
    path: '/users/:id/connected-accounts',
    scopes: ['read:users'],
    summary: 'Get the connected accounts of a user',
    query: z.strictObject(cursorQuery),
    handle: async (deps, { params, query }) => {
      const user = await userOf(deps, params.id);
      const items = (await connectedAccountsOf(deps, user.id)).map((one) => ({
        ...connectedAccountView(one),
        connection_id: one.connection_id,
        strategy: one.strategy,
      }));
      return ok(
        await arrayAnswer(query, items, ({ id }) => id, { key: 'connected_accounts', isCursorOnly: true }),
      );
    },
  }),
];
