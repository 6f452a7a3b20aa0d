import { AsyncPipe } from '@angular/common';
import { HttpClient, type HttpErrorResponse } from '@angular/common/http';
import { Component, inject, signal } from '@angular/core';
import { AuthService } from '@auth0/auth0-angular';

@Component({
  selector: 'app-root',
  imports: [AsyncPipe],
  template: `
    <main>
      <h1>Angular example</h1>
      @if (auth.error$ | async; as error) {
        <p role="alert">{{ error.message }}</p>
      }
      @if (auth.isLoading$ | async) {
        <p>Loading…</p>
      } @else if (auth.user$ | async; as user) {
        <p>You are logged in as {{ user.email }}.</p>
        <button (click)="callApi()">Call the API</button>
        <button (click)="logOut()">Log out</button>
        <p role="status">{{ answer() }}</p>
      } @else {
        <button (click)="auth.loginWithRedirect()">Log in</button>
      }
    </main>
  `,
})
export class App {
  protected readonly auth = inject(AuthService);
  private readonly http = inject(HttpClient);
  protected readonly answer = signal('');

  protected callApi(): void {
    this.http.get<{ message: string }>('/api/messages').subscribe({
      next: ({ message }) => this.answer.set(message),
      error: ({ status }: HttpErrorResponse) => this.answer.set(`The API answered ${status}`),
    });
  }

  protected logOut(): void {
    this.auth.logout({ logoutParams: { returnTo: window.location.origin } });
  }
}
