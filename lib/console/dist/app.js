import{a as o,q as r,t as m,u as i}from"./shell.js";var p=document.getElementById("app");p&&m().finally(()=>o(r(i,{}),p));
