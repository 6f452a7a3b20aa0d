// Templates that take long where no limit of the template language holds.

const ITEMS = '{% assign items = (1..4000) %}';

/** Each computes for seconds within one filter. */
export const SLOW_FILTERS: Readonly<Record<string, string>> = Object.fromEntries(
  ['where_exp', 'reject_exp', 'group_by_exp', 'find_exp', 'has_exp'].map((filter) => [
    filter,
    `${ITEMS}{% assign y = items | ${filter}: "i", "items | find_exp: 'j', 'j == 0'" %}done`,
  ]),
);

export const SLOW_FILTER: string = SLOW_FILTERS.where_exp ?? '';
