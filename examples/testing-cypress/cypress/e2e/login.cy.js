const ADA = { email: 'ada@example.test', password: 'A-good-Passw0rd' };

// Each test begins with the state of the tenant file, and with a user.
beforeEach(() => {
  cy.task('reset');
  cy.task('createUser', { ...ADA, profile: { email_verified: true } });
});

function logIn(password) {
  cy.visit('/');
  cy.contains('a', 'Log in').click();
  cy.origin(Cypress.env('gatehouse'), { args: { email: ADA.email, password } }, ({ email, password }) => {
    cy.get('input[name=username]').type(email);
    cy.get('input[name=password]').type(password);
    cy.contains('button', 'Continue').click();
  });
}

it('logs in and out', () => {
  logIn(ADA.password);
  cy.contains(`You are logged in as ${ADA.email}.`);
  cy.contains('a', 'Log out').click();
  cy.contains('a', 'Log in');
});

it('does not log in with a wrong password', () => {
  logIn('wrong');
  cy.origin(Cypress.env('gatehouse'), () => {
    cy.contains('Wrong email or password');
  });
});
